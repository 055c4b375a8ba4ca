"""The command line: parse, wire, render. Only importer of click."""
