"""The report of a run (MET-8): what is known of it, gathered once, and written as Markdown and as a page."""
