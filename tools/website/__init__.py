"""The documentation site: hooks for MkDocs, which `mkdocs.yml` names, and checks."""
