"""Parts of the experiment about tables that are larger than memory."""
