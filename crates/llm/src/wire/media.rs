//! Media types that each wire format accepts in messages.

use super::Wire;

/// Images that all formats accept.
const IMAGES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

const PDF: &str = "application/pdf";

impl Wire {
    /// Whether messages may contain a file of this media type. A model may accept less than its format.
    pub fn accepts_media(self, media_type: &str) -> bool {
        if IMAGES.contains(&media_type) || media_type == PDF {
            return true;
        }
        let others: &[&str] = match self {
            Wire::OpenAiChat => &["image/gif", "audio/wav", "audio/mpeg"],
            Wire::OpenAiResponses | Wire::Anthropic => &["image/gif"],
            Wire::Gemini => &[
                "image/heic",
                "audio/wav",
                "audio/mpeg",
                "audio/aiff",
                "audio/aac",
                "audio/ogg",
                "audio/flac",
            ],
        };
        others.contains(&media_type)
    }
}
