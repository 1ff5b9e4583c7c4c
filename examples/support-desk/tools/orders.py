"""The shop's orders: look one up, refund one."""

from __future__ import annotations

from lousho import tool

ORDERS = {
    "4711": {"item": "desk lamp", "amount": 39.0, "status": "delivered"},
    "4712": {"item": "standing desk", "amount": 620.0, "status": "on its way"},
}


@tool
def find_order(order: str) -> dict[str, object]:
    """Find an order by its number and return the item, the amount and the status.

    Args:
        order: The order number, e.g. 4711.
    """
    if order not in ORDERS:
        raise LookupError(f"There is no order {order}.")
    return {"order": order, **ORDERS[order]}


@tool
def refund_order(order: str, amount: float, reason: str = "not given") -> dict[str, object]:
    """Refund an order.

    Args:
        order: The order number, e.g. 4711.
        amount: How much to pay back, in euros.
        reason: Why the customer gets the money back.
    """
    if order not in ORDERS:
        raise LookupError(f"There is no order {order}.")
    return {"order": order, "refunded": amount, "reason": reason}
