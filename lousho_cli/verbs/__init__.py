"""One file a verb. A verb module is imported only when its verb, or the list of all verbs, is asked for."""
