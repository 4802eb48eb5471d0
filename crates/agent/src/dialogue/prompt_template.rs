//! Templates of prompts.

use super::context::AgentMessage;
use bakeoff_core::{Content, Message};
use std::fmt;
use std::sync::Arc;

/// Rewrites the text of a prompt; the error states why it cannot.
type Render = dyn Fn(&str) -> Result<String, String> + Send + Sync;

/// Wording in which a config sends prompts. The conversation keeps the original prompts.
///
/// ```
/// use bakeoff_agent::PromptTemplate;
///
/// let template = PromptTemplate::new("Answer in one sentence: {{ prompt }}");
/// assert_eq!(template.render("Why?").as_deref(), Ok("Answer in one sentence: Why?"));
/// ```
#[derive(Clone)]
pub struct PromptTemplate(Arc<Render>);

impl PromptTemplate {
    /// A text in which `{{ prompt }}` stands for the prompt.
    pub fn new(text: impl Into<String>) -> PromptTemplate {
        let text = text.into();
        PromptTemplate::from_fn(move |prompt| Ok(replace_placeholders(&text, prompt)))
    }

    /// A function from the prompt to the text that is sent, such as a template engine. Its error is a message for the
    /// user; the loop then does not start.
    pub fn from_fn(
        render: impl Fn(&str) -> Result<String, String> + Send + Sync + 'static,
    ) -> PromptTemplate {
        PromptTemplate(Arc::new(render))
    }

    /// Returns the text that is sent for a prompt.
    ///
    /// # Errors
    ///
    /// The message of the function.
    pub fn render(&self, prompt: &str) -> Result<String, String> {
        (self.0)(prompt)
    }

    /// Returns a message in this wording; `None` if it is not a prompt of the user. Other content than text follows
    /// the text.
    pub(super) fn apply(&self, prompt: &AgentMessage) -> Result<Option<Message>, String> {
        let Some(message @ Message::User { content }) = prompt.as_llm() else { return Ok(None) };
        let text = self.render(&message.text())?;
        let others = content.iter().filter(|part| !matches!(part, Content::Text { .. })).cloned();
        let content = std::iter::once(Content::text(text)).chain(others).collect();
        Ok(Some(Message::User { content }))
    }
}

impl fmt::Debug for PromptTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptTemplate").finish_non_exhaustive()
    }
}

/// Replaces `{{ prompt }}`, with any white space inside the braces.
fn replace_placeholders(text: &str, prompt: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        result.push_str(before);
        match after.split_once("}}") {
            Some((name, after)) if name.trim() == "prompt" => {
                result.push_str(prompt);
                rest = after;
            }
            _ => {
                result.push_str("{{");
                rest = after;
            }
        }
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once() {
        for (text, prompt, expected) in [
            ("{{ prompt }}", "x", "x"),
            ("{{prompt}}: {{  prompt }}!", "a", "a: a!"),
            ("{{ other }} {{ prompt", "x", "{{ other }} {{ prompt"),
            ("{{ {{ prompt }}", "x", "{{ x"),
            ("é {{ prompt }}", "{{ prompt }}", "é {{ prompt }}"),
            ("none", "x", "none"),
        ] {
            assert_eq!(replace_placeholders(text, prompt), expected, "{text}");
        }
    }
}
