"""Adapters to other packages, each loaded only when it is imported: they translate, and contain no formula."""
