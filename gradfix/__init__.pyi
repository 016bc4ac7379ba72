from explainer import __version__ as __version__
from explainer.errors import GradfixError as GradfixError
from explainer.errors import SilentFailure as SilentFailure
from explainer.integrations.excepthook import install as install
from explainer.integrations.lightning import LightningCallback as LightningCallback
from explainer.integrations.tracing import trace as trace
from explainer.integrations.trainer import GradfixCallback as GradfixCallback
from explainer.integrations.watching import watch as watch
from explainer.model.report import Report as Report
from explainer.workflow import explain as explain

__all__ = [
    "GradfixError",
    "Report",
    "SilentFailure",
    "__version__",
    "explain",
    "install",
    "trace",
    "watch",
]

CALLBACKS: tuple[str, ...]

def find_explainer() -> object: ...
def load_ipython_extension(shell: object) -> None: ...
def unload_ipython_extension(shell: object) -> None: ...
