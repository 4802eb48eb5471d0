//! What is sent of a conversation that is too long for the model's window.
//!
//! The conversation itself stays as it is; each call gets a view of it. First the outputs of tools
//! are shortened, then messages in the middle are left out, then fewer and fewer are kept, and at
//! last long texts are cut. Calls of tools and their results are never torn apart, and the user's
//! last message is always sent.

use super::config::ContextConfig;
use bakeoff_core::{Content, Message, Tool};

/// What an image counts as, whatever its size: providers scale images down.
const IMAGE_TOKENS: u64 = 1_600;

/// Texts are not cut below this many characters.
const LEAST_CHARACTERS: usize = 200;

/// A view of a conversation that was too long.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compacted {
    pub(super) messages: Vec<Message>,
    /// Messages that there were.
    pub(super) before: usize,
    /// Tokens that there were.
    pub(super) tokens: u64,
    pub(super) sent_tokens: u64,
    pub(super) budget: u64,
    pub(super) fits: bool,
}

/// Tokens of a text: one for every four characters.
pub(super) fn tokens_of_text(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Tokens of what a model is told about its tools.
pub(super) fn tokens_of(tools: &[Tool]) -> u64 {
    let each = |tool: &Tool| {
        tokens_of_text(&tool.name)
            + tokens_of_text(&tool.description)
            + tokens_of_text(&tool.parameters.to_string())
    };
    tools.iter().map(each).sum()
}

fn tokens_of_message(message: &Message) -> u64 {
    let each = |part: &Content| match part {
        Content::Text { text } | Content::Thinking { text, .. } => tokens_of_text(text),
        Content::Image { .. } => IMAGE_TOKENS,
        Content::ToolCall(call) => {
            tokens_of_text(&call.name) + tokens_of_text(&call.arguments.to_string())
        }
        Content::Opaque { value } => tokens_of_text(&value.to_string()),
    };
    message.content().iter().map(each).sum()
}

fn tokens_of_all(messages: &[Message]) -> u64 {
    messages.iter().map(tokens_of_message).sum()
}

/// A view that fits, or comes as near to it as can be; `None` when everything fits. What stands
/// beside the conversation, instructions and tools, has `beside` tokens. A tenth of the window is
/// left to the answer.
pub(super) fn compact<'m>(
    said: impl Iterator<Item = &'m Message> + Clone,
    beside: u64,
    config: &ContextConfig,
) -> Option<Compacted> {
    let budget = (config.max_context_tokens / 10 * 9).saturating_sub(beside);
    let tokens: u64 = said.clone().map(tokens_of_message).sum();
    if tokens <= budget {
        return None;
    }
    let mut messages: Vec<Message> = said.cloned().collect();
    let before = messages.len();
    let done = |messages: Vec<Message>| {
        let sent_tokens = tokens_of_all(&messages);
        let fits = sent_tokens <= budget;
        Compacted { messages, before, tokens, sent_tokens, budget, fits }
    };
    shorten_tool_outputs(&mut messages, config.tool_output_lines);
    if tokens_of_all(&messages) <= budget {
        return Some(done(messages));
    }
    let mut recent = config.keep_recent.max(1);
    loop {
        let kept = without_the_middle(&messages, config.keep_first, recent);
        if tokens_of_all(&kept) <= budget {
            return Some(done(kept));
        }
        if recent == 1 {
            // What is left is what matters most: a part of each is more than the whole of some.
            let cut = with_cut_texts(kept, budget);
            if tokens_of_all(&cut) <= budget {
                return Some(done(cut));
            }
            break;
        }
        recent /= 2;
    }
    let kept = without_the_middle(&messages, 0, 1);
    Some(done(with_cut_texts(kept, budget)))
}

/// Keeps the first and the last lines of what tools said.
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

/// Keeps so many messages at both ends and the last of the user, without which nobody knows what is
/// asked; and notes of what was there between.
fn without_the_middle(messages: &[Message], first: usize, recent: usize) -> Vec<Message> {
    let is_result = |message: &Message| matches!(message, Message::ToolResult { .. });
    let calls = |message: &Message| {
        message.content().iter().any(|part| matches!(part, Content::ToolCall(_)))
    };
    // Results of tools come with the message that called them.
    let mut tail = messages.len().saturating_sub(recent);
    while tail > 0 && messages.get(tail).is_some_and(is_result) {
        tail -= 1;
    }
    let mut head = first.min(tail);
    while head > 0 && (is_result(&messages[head - 1]) || calls(&messages[head - 1])) {
        head -= 1;
    }
    let question = messages.iter().rposition(|message| matches!(message, Message::User { .. }));
    let question = question.filter(|place| (head..tail).contains(place)).unwrap_or(tail);
    let mut kept = messages[..head].to_vec();
    kept.extend(note(question - head));
    if question < tail {
        kept.push(messages[question].clone());
        kept.extend(note(tail - question - 1));
    }
    kept.extend_from_slice(&messages[tail..]);
    kept
}

/// In place of so many messages.
fn note(left_out: usize) -> Option<Message> {
    let text = match left_out {
        0 => return None,
        1 => "[1 earlier message is left out here]".to_owned(),
        many => format!("[{many} earlier messages are left out here]"),
    };
    Some(Message::user(text))
}

/// Cuts the longest texts, all of them to the same length, so far that everything fits.
fn with_cut_texts(mut messages: Vec<Message>, budget: u64) -> Vec<Message> {
    const DOTS: &str = "...";
    let texts = messages.iter().flat_map(Message::content).filter_map(|part| match part {
        Content::Text { text } => Some(tokens_of_text(text)),
        _ => None,
    });
    let mut texts: Vec<u64> = texts.collect();
    let rest = tokens_of_all(&messages) - texts.iter().sum::<u64>();
    let share = usize::try_from(level(&mut texts, budget.saturating_sub(rest))).unwrap_or_default();
    let most = share.saturating_mul(4).max(LEAST_CHARACTERS + DOTS.len());
    for message in &mut messages {
        let (Message::System { content }
        | Message::User { content }
        | Message::Assistant { content }
        | Message::ToolResult { content, .. }) = message;
        for part in content {
            if let Content::Text { text } = part
                && text.char_indices().nth(most).is_some()
                && let Some((end, _)) = text.char_indices().nth(most - DOTS.len())
            {
                text.truncate(end);
                text.push_str(DOTS);
            }
        }
    }
    messages
}

/// The length to which the longest have to be cut so that all together have no more than this.
fn level(lengths: &mut [u64], mut room: u64) -> u64 {
    lengths.sort_unstable();
    let mut left = lengths.len() as u64;
    for length in lengths {
        if *length > room / left {
            return room / left;
        }
        room -= *length;
        left -= 1;
    }
    u64::MAX
}
