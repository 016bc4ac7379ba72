"""Report to text: terminal, JSON, Markdown, HTML, SARIF, GitHub annotations. What users wrote is shown, never obeyed."""
