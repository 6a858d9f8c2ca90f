"""``%load_ext fastops``: the IPython extension, which calls `install` and adds a magic."""

from fastops._install.placement import install, uninstall
from fastops._reports.explain import profile

_MAGIC = "fastops_profile"


def load_ipython_extension(shell):
    """Call `install`, and add the magic ``%%fastops_profile``: ``%load_ext fastops``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The shell of IPython.
    """

    def fastops_profile(line, cell=None):
        """Run a line or a cell under `fastops.profile`; the result is the report.

        ::

            %fastops_profile model(x)
            report = %fastops_profile model(x)

            %%fastops_profile
            for batch in batches:
                model(batch)
        """
        source = shell.transform_cell(line if cell is None else cell)
        name = shell.compile.cache(source)  # tracebacks find source lines by this name
        code = shell.compile(shell.compile.ast_parse(source, name), name, "exec")
        with profile() as report:
            exec(code, shell.user_ns)
        return report

    shell.register_magic_function(fastops_profile, "line_cell", _MAGIC)
    install()


def unload_ipython_extension(shell):
    """Undo the changes of `load_ipython_extension`: ``%unload_ext fastops``.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The shell of IPython.
    """
    uninstall()
    for magics in shell.magics_manager.magics.values():
        magics.pop(_MAGIC, None)
