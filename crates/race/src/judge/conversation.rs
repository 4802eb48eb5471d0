//! The conversation that a judge sees: texts of the user and the assistant only.

use crate::outcome::ParallelLoopOutcome;
use bakeoff_agent::AgentMessage;
use bakeoff_core::Message;

/// The input that all branches had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    /// Transcript of the messages before the query; empty if there are none.
    pub(super) prior: String,
    /// The query that the branches answer.
    pub(super) query: String,
}

impl Conversation {
    /// Takes the query from the prompts or, without prompts, from the last user message before the branches
    /// started. All branches started with the same messages, so one outcome is sufficient.
    pub(super) fn new(
        prompts: &[AgentMessage],
        outcome: Option<&ParallelLoopOutcome>,
    ) -> Conversation {
        let base = outcome.map_or(&[][..], |outcome| {
            let messages = &outcome.context.messages;
            messages.get(..outcome.original_context_len).unwrap_or(messages)
        });
        if !prompts.is_empty() {
            let texts: Vec<String> = prompts.iter().filter_map(user_text).collect();
            return Conversation { prior: transcript(base), query: texts.join("\n") };
        }
        let last = base.iter().rposition(|message| user_text(message).is_some());
        let (before, query) = base.split_at(last.unwrap_or(base.len()));
        Conversation {
            prior: transcript(before),
            query: query.first().and_then(user_text).unwrap_or_default(),
        }
    }
}

fn user_text(message: &AgentMessage) -> Option<String> {
    let message = message.as_llm()?;
    matches!(message, Message::User { .. }).then(|| message.text())
}

/// Formats messages as a transcript. Messages without text are omitted.
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

    fn outcome_with(messages: &[Message], original: usize) -> ParallelLoopOutcome {
        let mut outcome = answered(&Session::named("s"), "m", None, 1);
        outcome.context.messages = messages.iter().cloned().map(AgentMessage::Llm).collect();
        outcome.original_context_len = original;
        outcome
    }

    fn conversation(prior: &str, query: &str) -> Conversation {
        Conversation { prior: prior.to_owned(), query: query.to_owned() }
    }

    #[test]
    fn messages_of_the_branch_are_excluded() {
        let messages =
            [Message::user("a"), Message::assistant("b"), Message::user("c"), Message::user("d")];
        let outcome = outcome_with(&messages, 3);
        assert_eq!(
            Conversation::new(&[], Some(&outcome)),
            conversation("User: a\nAssistant: b", "c")
        );
        let prompts = [AgentMessage::user("d")];
        assert_eq!(
            Conversation::new(&prompts, Some(&outcome)),
            conversation("User: a\nAssistant: b\nUser: c", "d")
        );
    }

    #[test]
    fn short_context_or_missing_user_message_is_accepted() {
        let outcome = outcome_with(&[Message::user("a"), Message::user("b")], 120);
        assert_eq!(Conversation::new(&[], Some(&outcome)), conversation("User: a", "b"));
        let no_user = outcome_with(&[Message::system("s"), Message::assistant("b")], 2);
        assert_eq!(Conversation::new(&[], Some(&no_user)), conversation("Assistant: b", ""));
        assert_eq!(Conversation::new(&[], None), Conversation::default());
    }
}
