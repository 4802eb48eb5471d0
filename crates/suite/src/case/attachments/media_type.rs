//! Media types of files, from their first bytes or their extension.

use std::path::Path;

/// Number of bytes that identify a type.
pub(super) const PREFIX_BYTES: u64 = 16;

/// The supported types, for messages.
pub(super) const NAMES: &str = "PNG, JPEG, GIF, WebP, HEIC, PDF, WAV, MP3, AIFF, AAC, Ogg and FLAC";

/// Types with the bytes at the beginning of their files.
const SIGNATURES: [(&[u8], &str); 13] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
];

/// Types of container formats: bytes at the beginning, bytes at an offset.
const CONTAINERS: [(&[u8], usize, &[u8], &str); 8] = [
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"FORM", 8, b"AIFF", "audio/aiff"),
    (b"FORM", 8, b"AIFC", "audio/aiff"),
    (b"", 4, b"ftyphei", "image/heic"),
    (b"", 4, b"ftyphev", "image/heic"),
    (b"", 4, b"ftypmif1", "image/heic"),
    (b"", 4, b"ftypmsf1", "image/heic"),
];

/// Types by extension, for files without a known signature.
const EXTENSIONS: [(&str, &str); 15] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("pdf", "application/pdf"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
    ("aif", "audio/aiff"),
    ("aiff", "audio/aiff"),
    ("aac", "audio/aac"),
    ("ogg", "audio/ogg"),
    ("oga", "audio/ogg"),
    ("flac", "audio/flac"),
];

/// Returns the media type of a file.
pub(super) fn detect(start: &[u8], path: &Path) -> Option<&'static str> {
    let signature = SIGNATURES.iter().find(|(bytes, _)| start.starts_with(bytes));
    let container = || {
        let is_container = |(first, at, second, _): &&(&[u8], usize, &[u8], &str)| {
            start.starts_with(first) && start.get(*at..).is_some_and(|it| it.starts_with(second))
        };
        CONTAINERS.iter().find(is_container).map(|(_, _, _, name)| *name)
    };
    let by_extension = || {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(known, _)| *known == extension).map(|(_, name)| *name)
    };
    signature.map(|(_, name)| *name).or_else(container).or_else(by_extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_before_the_extension() {
        let table: [(&[u8], &str, Option<&str>); 10] = [
            (b"\x89PNG\r\n\x1a\n", "a.jpg", Some("image/png")),
            (b"\xff\xd8\xff\xe0", "a", Some("image/jpeg")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "a.wav", Some("image/webp")),
            (b"RIFF\x01\x02\x03\x04WAVEfmt ", "a", Some("audio/wav")),
            (b"\0\0\0\x18ftypheic", "a", Some("image/heic")),
            (b"%PDF-1.4", "a.txt", Some("application/pdf")),
            (b"FORM\0\0\0\0AIFF", "a", Some("audio/aiff")),
            (b"RIFF", "a.MP3", Some("audio/mpeg")),
            (b"text", "a.txt", None),
            (b"text", "png", None),
        ];
        for (start, name, expected) in table {
            assert_eq!(detect(start, Path::new(name)), expected, "{name} {start:?}");
        }
    }
}
