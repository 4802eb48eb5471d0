//! Templates of a suite, and whether what they name is there.

use super::tree::At;
use crate::case::Survey;
use crate::problem::{Problems, suggest};
use crate::template::{Template, with_texts};
use std::ops::Range;
use std::sync::Arc;

/// A template and the place of its text, to be checked against the cases.
pub(crate) struct Placed {
    pub(super) template: Template,
    pub(super) span: Range<usize>,
    /// Whether it knows the prompt, too.
    pub(super) has_prompt: bool,
    /// Which step of a chain it belongs to.
    pub(super) step: Option<Steps>,
}

/// A step of a chain, among the others.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    /// Names of all steps.
    pub(super) names: Arc<[String]>,
    /// Which one it is.
    pub(super) number: usize,
}

impl Placed {
    /// What templates know here beside the case's fields.
    fn known(&self) -> impl Iterator<Item = &str> + Clone {
        let earlier = self.step.as_ref().map_or(&[][..], |step| &step.names[..step.number]);
        let prompt = self.has_prompt.then_some("prompt");
        earlier.iter().map(String::as_str).chain(prompt)
    }

    /// That it uses an answer that is not there yet.
    fn too_early(&self, variable: &str) -> Option<String> {
        let Steps { names, number } = self.step.as_ref()?;
        let own = names.get(*number)?;
        if own == variable {
            return Some(format!("the step `{own}` cannot see its own answer"));
        }
        let is_later = names[*number..].iter().any(|name| name == variable);
        is_later.then(|| {
            format!("the step `{own}` cannot see the answer of `{variable}`, which comes later")
        })
    }
}

/// How templates are written.
pub(crate) const TEMPLATE_HINT: &str = "fields of the case are written as {{ name }}";

/// Compiles a template and remembers it for the check of its variables.
pub(super) fn compile(
    text: At<&str>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<Template> {
    compile_for(text, None, templates, problems)
}

/// [`compile`], for a step of a chain.
pub(super) fn compile_for(
    text: At<&str>,
    step: Option<Steps>,
    templates: &mut Vec<Placed>,
    problems: &mut Problems<'_>,
) -> Option<Template> {
    match Template::compile(text.value) {
        Ok(template) => {
            templates.push(Placed {
                template: template.clone(),
                span: text.span,
                has_prompt: false,
                step,
            });
            Some(template)
        }
        Err(error) => {
            problems.at(text.span, error.in_words(text.value)).with_hint(TEMPLATE_HINT);
            None
        }
    }
}

/// Fills every template in with the first case: what fails there for another reason than a field
/// that only other cases have would fail for all of them.
pub(super) fn check_variables(templates: &[Placed], survey: &Survey, problems: &mut Problems<'_>) {
    let Some(first) = &survey.first else { return };
    for placed in templates {
        let variables = || placed.template.variables().iter();
        let mut too_early = variables().filter_map(|name| placed.too_early(name)).peekable();
        if too_early.peek().is_some() {
            for message in too_early {
                problems.at(placed.span.clone(), message).with_hint(
                    "steps see the case's fields and the answers of the steps before them",
                );
            }
            continue;
        }
        let unknown_yet = placed.known().map(|name| (name, ""));
        let Err(error) = placed.template.try_render(&with_texts(first, unknown_yet)) else {
            continue;
        };
        let is_known = |name: &&String| {
            survey.fields.contains(*name) || placed.known().any(|known| known == *name)
        };
        let unknown: Vec<&String> = variables().filter(|name| !is_known(name)).collect();
        for variable in &unknown {
            let problem =
                problems.at(placed.span.clone(), format!("no case has the field `{variable}`"));
            problem.hint =
                suggest(variable, survey.fields.iter().map(String::as_str).chain(placed.known()));
        }
        // Nobody knows what earlier steps will answer; it may well be what the template needs.
        let depends = placed.step.is_some()
            && placed.known().any(|name| placed.template.variables().contains(name));
        if unknown.is_empty() && !error.is_undefined && !depends {
            problems.at(placed.span.clone(), format!("the template fails: {}", error.message));
        }
    }
}
