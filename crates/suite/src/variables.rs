//! Compilation of the templates of a suite and validation of their variables.

use super::tree::SourceText;
use crate::case::Survey;
use crate::problem::{Problems, suggest};
use crate::template::{Template, with_roles, with_texts};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Use of a template in the suite file, to be validated against the cases.
pub(crate) struct TemplateUse {
    pub(super) template: Template,
    pub(super) span: Range<usize>,
    /// Whether the variable `prompt` is available.
    pub(super) has_prompt: bool,
    /// Models of the roles that are available under `roles`; empty if there are none.
    pub(super) roles: BTreeMap<String, String>,
    /// Chain step that the template belongs to.
    pub(super) step: Option<StepPosition>,
}

/// Position of a step in its chain.
#[derive(Debug, Clone)]
pub(crate) struct StepPosition {
    /// Names of all steps of the chain.
    pub(super) names: Arc<[String]>,
    /// Index of the step.
    pub(super) number: usize,
}

impl TemplateUse {
    /// Returns the available variables other than case fields.
    fn known_variables(&self) -> impl Iterator<Item = &str> + Clone {
        let earlier = self.step.as_ref().map_or(&[][..], |step| &step.names[..step.number]);
        let prompt = self.has_prompt.then_some("prompt");
        let roles = (!self.roles.is_empty()).then_some("roles");
        earlier.iter().map(String::as_str).chain(prompt).chain(roles)
    }

    /// Returns a message if the variable is the output of this or a later step.
    fn unavailable_output(&self, variable: &str) -> Option<String> {
        let StepPosition { names, number } = self.step.as_ref()?;
        let own = names.get(*number)?;
        if own == variable {
            return Some(format!("step `{own}` cannot use its own output"));
        }
        let is_later = names[*number..].iter().any(|name| name == variable);
        is_later
            .then(|| format!("step `{own}` cannot use the output of the later step `{variable}`"))
    }
}

/// Hint for the syntax of templates.
pub(crate) const TEMPLATE_HINT: &str = "write case fields as {{ name }}";

/// Compiles a template and records its use for [`check_variables`].
pub(super) fn compile(
    text: SourceText<'_>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<Template> {
    compile_for_step(text, None, templates, problems)
}

/// Like [`compile`], for a chain step.
pub(super) fn compile_for_step(
    text: SourceText<'_>,
    step: Option<StepPosition>,
    templates: &mut Vec<TemplateUse>,
    problems: &mut Problems<'_>,
) -> Option<Template> {
    match Template::compile(text.value) {
        Ok(template) => {
            templates.push(TemplateUse {
                template: template.clone(),
                span: text.span,
                has_prompt: false,
                roles: BTreeMap::new(),
                step,
            });
            Some(template)
        }
        Err(error) => {
            problems.at(text.span, error.describe(text.value)).with_hint(TEMPLATE_HINT);
            None
        }
    }
}

/// Renders all templates with the first case and reports errors, except for fields that only other cases have:
/// other errors would occur for all cases.
pub(super) fn check_variables(
    templates: &[TemplateUse],
    survey: &Survey,
    problems: &mut Problems<'_>,
) {
    let Some(first) = &survey.first else { return };
    for usage in templates {
        let variables = || usage.template.variables().iter();
        let mut unavailable =
            variables().filter_map(|name| usage.unavailable_output(name)).peekable();
        if unavailable.peek().is_some() {
            for message in unavailable {
                problems
                    .at(usage.span.clone(), message)
                    .with_hint("a step can use case fields and outputs of earlier steps");
            }
            continue;
        }
        let placeholders =
            usage.known_variables().filter(|name| *name != "roles").map(|name| (name, ""));
        let fields = with_roles(&with_texts(first, placeholders), &usage.roles);
        let Err(error) = usage.template.render(&fields) else {
            continue;
        };
        let is_known = |name: &&String| {
            survey.fields.contains(*name) || usage.known_variables().any(|known| known == *name)
        };
        let unknown: Vec<&String> = variables().filter(|name| !is_known(name)).collect();
        for variable in &unknown {
            let problem =
                problems.at(usage.span.clone(), format!("no case has the field `{variable}`"));
            problem.hint = suggest(
                variable,
                survey.fields.iter().map(String::as_str).chain(usage.known_variables()),
            );
        }
        // The outputs of earlier steps are unknown here and may be valid for the template.
        let uses_outputs = usage.step.is_some()
            && usage.known_variables().any(|name| usage.template.variables().contains(name));
        let uses_roles = variables().any(|name| name == "roles" && !usage.roles.is_empty());
        if unknown.is_empty() && (!error.is_undefined() || uses_roles) && !uses_outputs {
            problems.at(usage.span.clone(), format!("cannot render the template: {error}"));
        }
    }
}
