"""This machine: files, folders, locks, waiting."""
