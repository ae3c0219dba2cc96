"""The command line: `app` is the table of commands, and one module holds a command or a few that belong together."""
