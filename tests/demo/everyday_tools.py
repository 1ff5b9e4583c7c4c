"""Tools such as people write: with docstrings, type hints, and no thought of a rule-based model."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from lousho.tools import Tool, tool


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, object]:
    """Get the current weather for a city.

    Args:
        city: Name of the city, e.g. Paris.
        unit: Unit of the temperature.
    """
    return {"city": city, "temperature": 21, "unit": unit, "sky": "clear"}


@tool
def convert_units(
    value: float, from_unit: Literal["km", "miles", "kg", "pounds"], to_unit: Literal["km", "miles", "kg", "pounds"]
) -> float:
    """Convert a value from one unit to another."""
    return value * 0.621371


@tool
def calculate(expression: str) -> float:
    """Evaluate a math expression.

    Args:
        expression: The expression, e.g. "2 + 3 * 4".
    """
    return {"2 + 2": 4.0, "12 * 7": 84.0}.get(expression, 0.0)


class Attendee(BaseModel):
    name: str
    email: str | None = Field(default=None, description="E-mail address")


@tool
def book_meeting(
    title: str, start: datetime, duration_minutes: int = 30, attendees: list[Attendee] | None = None
) -> str:
    """Book a meeting in the calendar.

    Args:
        title: What the meeting is about.
        start: When it starts.
        duration_minutes: Length in minutes.
        attendees: Who takes part.
    """
    return f"booked {title} at {start.isoformat()}"


@tool
def add_todo(text: str, due: date | None = None) -> str:
    """Add an item to the todo list.

    Args:
        text: What to do.
        due: Day it is due.
    """
    return "added"


@tool
def list_todos(status: Literal["open", "done", "all"] = "open") -> list[dict[str, object]]:
    """List the todos."""
    return [{"id": 1, "text": "buy milk", "done": False}, {"id": 2, "text": "call the bank", "done": True}]


@tool
def complete_todo(id: int) -> str:
    """Mark a todo as done.

    Args:
        id: Number of the todo.
    """
    if id > 2:
        raise ValueError(f"there is no todo {id}")
    return "marked as done"


@tool
def find_order(order_id: str) -> dict[str, Any]:
    """Look up an order by its id.

    Args:
        order_id: Order number, like A-1042.
    """
    if order_id == "A-0":
        raise LookupError("There is no order A-0")
    return {
        "order_id": order_id,
        "status": "shipped",
        "total": 49.9,
        "customer": {"name": "Ann", "email": "ann@example.com"},
    }


@tool(needs_approval=True)
def refund_order(order_id: str, amount: float | None = None, reason: str | None = None) -> str:
    """Refund an order.

    Args:
        order_id: Order number, like A-1042.
        amount: How much, in euros; everything when left out.
        reason: Why it is refunded.
    """
    return f"refunded {order_id}"


@tool
def send_email(to: str, subject: str, body: str) -> dict[str, object]:
    """Send an e-mail.

    Args:
        to: E-mail address of the recipient.
        subject: Subject line.
        body: The text of the message.
    """
    return {"sent": True}


@tool
def search_notes(query: str, limit: int = 10) -> list[dict[str, str]]:
    """Search the notes.

    Args:
        query: What to look for.
        limit: How many notes to return.
    """
    return [{"heading": "VPN setup", "text": "Install WireGuard, then import the profile."}]


@tool
def turn_on_light(room: str, brightness: int = 100) -> str:
    """Turn on the light in a room.

    Args:
        room: The room, e.g. kitchen.
        brightness: Brightness in percent, 1 to 100.
    """
    return f"{room} light on at {brightness}%"


@tool
def turn_off_light(room: str) -> str:
    """Turn off the light in a room."""
    return f"{room} light off"


@tool
def search_flights(origin: str, destination: str, departure_date: date, passengers: int = 1) -> list[dict[str, object]]:
    """Search for flights.

    Args:
        origin: Departure city or airport.
        destination: Arrival city or airport.
        departure_date: Day of departure.
        passengers: Number of passengers.
    """
    return [{"flight": "XY 123", "price": 199.5}]


@tool
def write_file(path: str, content: str) -> str:
    """Write content to a file."""
    return "written"


@tool
def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: Path of the file.
    """
    return "first line\nsecond line"


class Customer(BaseModel):
    name: str
    email: str = Field(description="E-mail address")


class Line(BaseModel):
    product: str = Field(description="Product name")
    quantity: int = Field(ge=1, description="How many")


@tool
def create_invoice(customer: Customer, lines: list[Line], express: bool = False) -> dict[str, object]:
    """Create an invoice for a customer.

    Args:
        customer: Who pays.
        lines: What is on it.
        express: Whether it is sent at once.
    """
    return {"invoice": "I-1", "lines": len(lines)}


OFFICE: list[Tool] = [
    get_weather,
    convert_units,
    calculate,
    book_meeting,
    add_todo,
    list_todos,
    complete_todo,
    find_order,
    refund_order,
    send_email,
    search_notes,
]
HOME: list[Tool] = [turn_on_light, turn_off_light, search_flights, write_file, read_file, create_invoice]
