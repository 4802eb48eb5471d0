//! Rendering of problems in a file, with the source lines at fault.

use crate::printer::count;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use bakeoff_core::{one_line, printable};
use bakeoff_suite::Problem;
use serde_json::{Value, json};

/// Returns the closing line below all problems.
pub(crate) fn summary(problems: &[Problem]) -> String {
    format!("{}; nothing was called", count(problems.len() as u64, "problem"))
}

/// Renders a problem with its source line.
pub(crate) fn render(problem: &Problem) -> String {
    let path = one_line(&problem.path.display().to_string());
    // The renderer replaces control characters of the excerpt.
    let (message, hint) = (printable(&problem.message), problem.hint.as_deref().map(printable));
    let mut title = Level::ERROR.primary_title(&*message);
    if let Some(code) = problem.code {
        title = title.id(code);
    }
    let group = match &problem.position {
        Some(position) if !position.excerpt.is_empty() => title.element(
            Snippet::source(position.excerpt.as_str())
                .line_start(position.line)
                .path(path.as_str())
                .annotation(AnnotationKind::Primary.span(position.span.clone())),
        ),
        Some(position) => title
            .element(Origin::path(path.as_str()).line(position.line).char_column(position.column)),
        None => title.element(Origin::path(path.as_str())),
    };
    let group = match &hint {
        Some(hint) => group.element(Level::HELP.message(&**hint)),
        None => group,
    };
    Renderer::styled().decor_style(DecorStyle::Ascii).render(&[group])
}

/// Returns a problem as an entry of the `error` event.
pub(crate) fn to_json(problem: &Problem) -> Value {
    json!({
        "message": problem.message,
        "code": problem.code,
        "path": problem.path.display().to_string(),
        "line": problem.position.as_ref().map(|position| position.line),
        "column": problem.position.as_ref().map(|position| position.column),
        "hint": problem.hint,
    })
}
