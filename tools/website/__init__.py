"""The documentation as a site: `mkdocs.yml` names the hooks of `mkdocs` that are here."""
