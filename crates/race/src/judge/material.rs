//! What a judge is shown of a conversation: texts of user and assistant, and nothing else.

use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::AgentMessage;
use bakeoff_core::Message;

/// What all candidates were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Material {
    /// The conversation before the query, as a transcript; empty when there is none.
    pub(super) prior: String,
    /// What was asked.
    pub(super) query: String,
}

impl Material {
    /// From the prompts, or without any from the last thing that the user said before the branches
    /// began. Every branch began with the same conversation, so one of them is enough.
    pub(super) fn of(prompts: &[AgentMessage], outcome: Option<&ParallelLoopOutcome>) -> Material {
        let base = outcome.map_or(&[][..], |outcome| {
            let messages = &outcome.context.messages;
            messages.get(..outcome.original_context_len).unwrap_or(messages)
        });
        if !prompts.is_empty() {
            let said: Vec<String> = prompts.iter().filter_map(said_by_user).collect();
            return Material { prior: transcript(base), query: said.join("\n") };
        }
        let last = base.iter().rposition(|message| said_by_user(message).is_some());
        let (before, query) = base.split_at(last.unwrap_or(base.len()));
        Material {
            prior: transcript(before),
            query: query.first().and_then(said_by_user).unwrap_or_default(),
        }
    }
}

fn said_by_user(message: &AgentMessage) -> Option<String> {
    let message = message.as_llm()?;
    matches!(message, Message::User { .. }).then(|| message.text())
}

/// Who said what, one after the other. Messages without text leave no trace.
fn transcript(messages: &[AgentMessage]) -> String {
    let mut lines = Vec::new();
    for message in messages.iter().filter_map(AgentMessage::as_llm) {
        let speaker = match message {
            Message::User { .. } => "User",
            Message::Assistant { .. } => "Assistant",
            Message::System { .. } | Message::ToolResult { .. } => continue,
        };
        let text = message.text();
        if !text.trim().is_empty() {
            lines.push(format!("{speaker}: {text}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answered;
    use bakeoff_agent::Session;

    fn begun_with(messages: &[Message], original: usize) -> ParallelLoopOutcome {
        let mut outcome = answered(&Session::named("s"), "m", None, 1);
        outcome.context.messages = messages.iter().cloned().map(AgentMessage::Llm).collect();
        outcome.original_context_len = original;
        outcome
    }

    fn material(prior: &str, query: &str) -> Material {
        Material { prior: prior.to_owned(), query: query.to_owned() }
    }

    #[test]
    fn what_a_branch_said_itself_is_not_part_of_it() {
        let talk =
            [Message::user("a"), Message::assistant("b"), Message::user("c"), Message::user("d")];
        let outcome = begun_with(&talk, 3);
        assert_eq!(Material::of(&[], Some(&outcome)), material("User: a\nAssistant: b", "c"));
        let prompts = [AgentMessage::user("d")];
        assert_eq!(
            Material::of(&prompts, Some(&outcome)),
            material("User: a\nAssistant: b\nUser: c", "d")
        );
    }

    #[test]
    fn a_context_that_is_too_short_or_without_user_is_taken_as_it_is() {
        let outcome = begun_with(&[Message::user("a"), Message::user("b")], 120);
        assert_eq!(Material::of(&[], Some(&outcome)), material("User: a", "b"));
        let silent = begun_with(&[Message::system("s"), Message::assistant("b")], 2);
        assert_eq!(Material::of(&[], Some(&silent)), material("Assistant: b", ""));
        assert_eq!(Material::of(&[], None), Material::default());
    }
}
