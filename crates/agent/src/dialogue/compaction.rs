//! Compaction of conversations that exceed the context window of the model.
//!
//! The conversation itself does not change; each call sends a compacted view of it. The steps, in order: shorten
//! tool results, omit messages in the middle, keep fewer recent messages, truncate long texts. Tool calls stay
//! together with their results, and the last user message is always sent.

use super::config::ContextConfig;
use bakeoff_core::{
    Content, Message, ToolDefinition, UNITS_PER_TOKEN, character_units, estimate_tokens,
    token_units,
};

/// Minimum estimated tokens of a truncated text.
const MIN_TEXT_TOKENS: u64 = 50;

/// Compacted view of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CompactedView {
    pub(super) messages: Vec<Message>,
    /// Number of messages of the conversation.
    pub(super) before: usize,
    /// Estimated tokens of the conversation.
    pub(super) tokens: u64,
    pub(super) sent_tokens: u64,
    pub(super) budget: u64,
    pub(super) fits: bool,
}

/// Estimates the tokens of tool definitions.
pub(super) fn tokens_of(tools: &[ToolDefinition]) -> u64 {
    let each = |tool: &ToolDefinition| {
        estimate_tokens(&tool.name)
            + estimate_tokens(&tool.description)
            + estimate_tokens(&tool.parameters.to_string())
    };
    tools.iter().map(each).sum()
}

fn tokens_of_message(message: &Message) -> u64 {
    let each = |part: &Content| match part {
        Content::Text { text } | Content::Thinking { text, .. } => estimate_tokens(text),
        Content::Image { .. } | Content::File { .. } => part.media_tokens(),
        Content::ToolCall(call) => {
            estimate_tokens(&call.name) + estimate_tokens(&call.arguments.to_string())
        }
        Content::Opaque { value } => estimate_tokens(&value.to_string()),
    };
    message.content().iter().map(each).sum()
}

fn tokens_of_all(messages: &[Message]) -> u64 {
    messages.iter().map(tokens_of_message).sum()
}

/// Returns a view that fits, or the smallest possible one; `None` if the whole conversation fits. Instructions
/// and tools have `fixed_tokens` tokens. A tenth of the window is reserved for the response.
pub(super) fn compact<'m>(
    history: impl Iterator<Item = &'m Message> + Clone,
    fixed_tokens: u64,
    config: &ContextConfig,
) -> Option<CompactedView> {
    let budget = (config.max_context_tokens / 10 * 9).saturating_sub(fixed_tokens);
    let tokens: u64 = history.clone().map(tokens_of_message).sum();
    if tokens <= budget {
        return None;
    }
    let mut messages: Vec<Message> = history.cloned().collect();
    let before = messages.len();
    let view = |messages: Vec<Message>| {
        let sent_tokens = tokens_of_all(&messages);
        let fits = sent_tokens <= budget;
        CompactedView { messages, before, tokens, sent_tokens, budget, fits }
    };
    shorten_tool_outputs(&mut messages, config.tool_output_lines);
    if tokens_of_all(&messages) <= budget {
        return Some(view(messages));
    }
    let mut recent = config.keep_recent.max(1);
    loop {
        let kept = omit_middle(&messages, config.keep_first, recent);
        if tokens_of_all(&kept) <= budget {
            return Some(view(kept));
        }
        if recent == 1 {
            // The remaining messages matter most, so parts of all are better than some in full.
            let truncated = truncate_texts(kept, budget);
            if tokens_of_all(&truncated) <= budget {
                return Some(view(truncated));
            }
            break;
        }
        recent /= 2;
    }
    let kept = omit_middle(&messages, 0, 1);
    Some(view(truncate_texts(kept, budget)))
}

/// Keeps the first and the last lines of tool results.
fn shorten_tool_outputs(messages: &mut [Message], lines: usize) {
    for message in messages {
        let Message::ToolResult { content, .. } = message else { continue };
        for part in content {
            let Content::Text { text } = part else { continue };
            let all: Vec<&str> = text.lines().collect();
            if all.len() <= lines {
                continue;
            }
            let (head, tail) = (lines.div_ceil(2), lines / 2);
            let marker = format!("[{} lines left out]", all.len() - head - tail);
            let kept = all[..head].iter().copied();
            let kept = kept.chain([marker.as_str()]).chain(all[all.len() - tail..].iter().copied());
            *text = kept.collect::<Vec<_>>().join("\n");
        }
    }
}

/// Keeps messages at both ends and the last user message, which contains the task, and inserts notes for the
/// omitted ones.
fn omit_middle(messages: &[Message], first: usize, recent: usize) -> Vec<Message> {
    let is_result = |message: &Message| matches!(message, Message::ToolResult { .. });
    let calls = |message: &Message| {
        message.content().iter().any(|part| matches!(part, Content::ToolCall(_)))
    };
    // Tool results stay with the message that called the tools.
    let mut tail = messages.len().saturating_sub(recent);
    while tail > 0 && messages.get(tail).is_some_and(is_result) {
        tail -= 1;
    }
    let mut head = first.min(tail);
    while head > 0 && (is_result(&messages[head - 1]) || calls(&messages[head - 1])) {
        head -= 1;
    }
    let task = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    let task = task.filter(|index| (head..tail).contains(index)).unwrap_or(tail);
    let mut kept = messages[..head].to_vec();
    kept.extend(note(task - head));
    if task < tail {
        kept.push(messages[task].clone());
        kept.extend(note(tail - task - 1));
    }
    kept.extend_from_slice(&messages[tail..]);
    kept
}

/// Returns the replacement for omitted messages.
fn note(omitted: usize) -> Option<Message> {
    let text = match omitted {
        0 => return None,
        1 => "[1 earlier message is left out here]".to_owned(),
        many => format!("[{many} earlier messages are left out here]"),
    };
    Some(Message::user(text))
}

/// Truncates the longest texts, all to the same length, until everything fits.
fn truncate_texts(mut messages: Vec<Message>, budget: u64) -> Vec<Message> {
    const DOTS: &str = "...";
    let texts = messages.iter().flat_map(Message::content).filter_map(|part| match part {
        Content::Text { text } => Some(estimate_tokens(text)),
        _ => None,
    });
    let mut texts: Vec<u64> = texts.collect();
    let rest = tokens_of_all(&messages) - texts.iter().sum::<u64>();
    let share = common_limit(&mut texts, budget.saturating_sub(rest));
    let max_units = share.max(MIN_TEXT_TOKENS).saturating_mul(UNITS_PER_TOKEN);
    for message in &mut messages {
        let (Message::System { content }
        | Message::User { content }
        | Message::Assistant { content }
        | Message::ToolResult { content, .. }) = message;
        for part in content {
            if let Content::Text { text } = part
                && token_units(text) > max_units
            {
                text.truncate(prefix_len(text, max_units - token_units(DOTS)));
                text.push_str(DOTS);
            }
        }
    }
    messages
}

/// Returns the length in bytes of the longest prefix with at most this estimated size.
fn prefix_len(text: &str, max_units: u64) -> usize {
    let mut units = 0;
    let mut fits = |letter: char| {
        units += character_units(letter);
        units <= max_units
    };
    text.find(|letter| !fits(letter)).unwrap_or(text.len())
}

/// Returns the maximum length to which texts must be truncated so that their sum is at most `budget`.
fn common_limit(lengths: &mut [u64], mut budget: u64) -> u64 {
    lengths.sort_unstable();
    let mut remaining = lengths.len() as u64;
    for length in lengths {
        if *length > budget / remaining {
            return budget / remaining;
        }
        budget -= *length;
        remaining -= 1;
    }
    u64::MAX
}
