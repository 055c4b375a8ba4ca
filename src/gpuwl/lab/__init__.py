"""What the steps share, and what a run of them does to a cluster and to a folder of files."""
