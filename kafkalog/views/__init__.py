"""Options, planning and reading of views, shared by the driver, tasks and the command line."""
