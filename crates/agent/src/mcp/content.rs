//! Conversion of results of MCP tools to message content.

use crate::dialogue::{ToolError, ToolOutput};
use crate::tools::truncate;
use bakeoff_core::{Content, ImageSource};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Maximum number of bytes of text in a result.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Maximum size of an image in base64; providers reject larger ones.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

/// Maximum number of parts in a result, because each costs tokens of its own.
const MAX_PARTS: usize = 256;

/// Replacement for content of unknown kind.
const UNKNOWN_CONTENT: &str = "[something of an unknown kind is left out]";

/// Converts the result of a tool; a result marked as error becomes an error.
pub(super) fn convert(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let mut budget = MAX_TEXT_BYTES;
    let rest = result.content.len().saturating_sub(MAX_PARTS);
    let blocks = result.content.into_iter().take(MAX_PARTS);
    let mut content: Vec<Content> = blocks.map(|block| convert_block(block, &mut budget)).collect();
    if rest > 0 {
        content.push(Content::text(format!("[{rest} more parts are left out]")));
    }
    if content.is_empty()
        && let Some(value) = result.structured_content
    {
        content.push(text(value.to_string(), &mut budget));
    }
    if content.is_empty() {
        content.push(Content::text("[the tool returned nothing]"));
    }
    match result.is_error {
        Some(true) => Err(ToolError::Failed(Content::join_text(&content))),
        _ => Ok(ToolOutput { content }),
    }
}

fn convert_block(block: ContentBlock, budget: &mut usize) -> Content {
    match block {
        ContentBlock::Text(block) => text(block.text, budget),
        ContentBlock::Image(image) if image.data.len() > MAX_IMAGE_BYTES => {
            Content::text(format!("[a picture of {} bytes is left out]", image.data.len()))
        }
        ContentBlock::Image(image) => Content::Image {
            source: ImageSource::Base64 { media_type: image.mime_type, data: image.data },
        },
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text: found, .. } => text(found, budget),
            ResourceContents::BlobResourceContents { uri, .. } => {
                text(format!("[{uri} is no text, and left out]"), budget)
            }
            _ => Content::text(UNKNOWN_CONTENT),
        },
        ContentBlock::ResourceLink(link) => text(format!("{}: {}", link.name, link.uri), budget),
        ContentBlock::Audio(_) => Content::text("[a sound is left out]"),
        // Kinds that later versions of the protocol add.
        _ => Content::text(UNKNOWN_CONTENT),
    }
}

/// Truncates a text to the remaining budget and notes how much was cut.
fn text(text: String, budget: &mut usize) -> Content {
    if text.len() <= *budget {
        *budget -= text.len();
        return Content::text(text);
    }
    let shown = truncate(&text, *budget);
    *budget = 0;
    Content::text(format!("{shown}\n[{} more bytes are not shown]", text.len() - shown.len()))
}
