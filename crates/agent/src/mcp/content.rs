//! What a server's tool returns, in the words that models are told it in.

use crate::dialogue::{ToolError, ToolOutput};
use crate::tools::beginning;
use bakeoff_core::{Content, ImageSource};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Most bytes of text that are passed on.
const MOST_TEXT: usize = 64 * 1024;

/// Most bytes of a picture, as base64: providers take no larger ones.
const MOST_IMAGE: usize = 5 * 1024 * 1024;

/// Most parts that are passed on, so that many small ones do not add up.
const MOST_PARTS: usize = 256;

/// In place of what is not known here.
const UNKNOWN: &str = "[something of an unknown kind is left out]";

/// What a tool returned; what it calls an error is one.
pub(super) fn read(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut room = MOST_TEXT;
    let rest = result.content.len().saturating_sub(MOST_PARTS);
    let blocks = result.content.into_iter().take(MOST_PARTS);
    let mut content: Vec<Content> = blocks.map(|block| part(block, &mut room)).collect();
    if rest > 0 {
        content.push(Content::text(format!("[{rest} more parts are left out]")));
    }
    if content.is_empty()
        && let Some(value) = result.structured_content
    {
        content.push(text(value.to_string(), &mut room));
    }
    if content.is_empty() {
        content.push(Content::text("[the tool returned nothing]"));
    }
    match result.is_error {
        Some(true) => Err(ToolError::Failed(Content::join_text(&content))),
        _ => Ok(ToolOutput { content }),
    }
}

fn part(block: ContentBlock, room: &mut usize) -> Content {
    match block {
        ContentBlock::Text(block) => text(block.text, room),
        ContentBlock::Image(image) if image.data.len() > MOST_IMAGE => {
            Content::text(format!("[a picture of {} bytes is left out]", image.data.len()))
        }
        ContentBlock::Image(image) => Content::Image {
            source: ImageSource::Base64 { media_type: image.mime_type, data: image.data },
        },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text: found, .. } => text(found, room),
            ResourceContents::BlobResourceContents { uri, .. } => {
                text(format!("[{uri} is no text, and left out]"), room)
            }
            _ => Content::text(UNKNOWN),
        },
        ContentBlock::ResourceLink(link) => text(format!("{}: {}", link.name, link.uri), room),
        ContentBlock::Audio(_) => Content::text("[a sound is left out]"),
        // The protocol grows.
        _ => Content::text(UNKNOWN),
    }
}

/// As much of a text as there is room for, and how much there is more.
fn text(text: String, room: &mut usize) -> Content {
    if text.len() <= *room {
        *room -= text.len();
        return Content::text(text);
    }
    let shown = beginning(&text, *room);
    *room = 0;
    Content::text(format!("{shown}\n[{} more bytes are not shown]", text.len() - shown.len()))
}
