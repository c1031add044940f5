"""Small pictures as SVG inside a page: lines and marks that take their colours from the page and follow it."""
