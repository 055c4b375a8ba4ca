"""What people see: rendering of what commands found."""
