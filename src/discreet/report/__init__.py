"""Render labels, pages and charts. Modules here know words and layouts, and nothing of data or accounting."""
