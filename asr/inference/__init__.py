"""Models as files (bundles), and what turns sound into text with them."""
