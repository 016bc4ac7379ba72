from explainer import __version__ as __version__
from explainer.errors import GradfixError as GradfixError
from explainer.integrations.excepthook import install as install
from explainer.integrations.tracing import trace as trace
from explainer.model.report import Report as Report
from explainer.workflow import explain as explain

__all__ = ["GradfixError", "Report", "__version__", "explain", "install", "trace"]

def find_explainer() -> object: ...
