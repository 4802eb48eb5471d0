//! Problems of a file, shown with the lines they are in.

use crate::printer::{Printer, count};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use bakeoff_suite::Problem;

/// Shows all problems and how many there are.
pub(crate) fn show(problems: &[Problem], printer: &Printer) {
    for problem in problems {
        printer.report(&rendered(problem));
    }
    let problems = count(problems.len() as u64, "problem");
    printer.error(format!("{problems}; nothing was called"), None);
}

fn rendered(problem: &Problem) -> String {
    let path = problem.path.display().to_string();
    let mut title = Level::ERROR.primary_title(problem.message.as_str());
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
    let group = match &problem.hint {
        Some(hint) => group.element(Level::HELP.message(hint.as_str())),
        None => group,
    };
    Renderer::styled().decor_style(DecorStyle::Ascii).render(&[group])
}
