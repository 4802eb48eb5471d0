//! Estimated tokens of images, documents and recordings, whose true number only the provider knows.

use crate::{Content, ImageSource};

/// Tokens of an image of any size; providers scale images down.
const IMAGE_TOKENS: u64 = 1_600;

/// Bytes of a document per token: about 60 KB and 1500 tokens per page.
const DOCUMENT_BYTES_PER_TOKEN: u64 = 40;

/// Bytes of a recording per token: 128 kbit/s at 32 tokens per second.
const AUDIO_BYTES_PER_TOKEN: u64 = 500;

/// Estimates the tokens of a file of this type and size.
///
/// ```
/// assert_eq!(bakeoff_core::media_tokens("image/png", 5_000_000), 1_600);
/// assert_eq!(bakeoff_core::media_tokens("application/pdf", 60_000), 1_500);
/// assert_eq!(bakeoff_core::media_tokens("audio/mpeg", 16_000), 32);
/// ```
pub fn media_tokens(media_type: &str, bytes: u64) -> u64 {
    match media_type.split('/').next() {
        Some("image") => IMAGE_TOKENS,
        Some("audio") => bytes.div_ceil(AUDIO_BYTES_PER_TOKEN),
        _ => bytes.div_ceil(DOCUMENT_BYTES_PER_TOKEN),
    }
}

impl Content {
    /// Estimates the tokens of an image or file; 0 for other parts.
    pub fn media_tokens(&self) -> u64 {
        match self {
            Content::Image { source: ImageSource::Url { .. } } => IMAGE_TOKENS,
            Content::Image { source: ImageSource::Base64 { media_type, data } }
            | Content::File { media_type, data, .. } => {
                // Base64 has four characters for three bytes.
                media_tokens(media_type, data.len() as u64 / 4 * 3)
            }
            _ => 0,
        }
    }
}
