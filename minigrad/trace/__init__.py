"""What a run leaves behind: its values in words, and what the tape keeps."""
