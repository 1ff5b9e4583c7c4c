"""Files become agents here: spec files, agent directories, Python modules, and the one entry to all of them, `target`."""
