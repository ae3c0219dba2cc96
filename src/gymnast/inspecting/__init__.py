"""One episode taken apart: everything the inspector shows, written into a folder that a page can read."""
