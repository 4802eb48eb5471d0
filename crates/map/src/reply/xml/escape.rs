//! Decoding of element texts.

/// Start of a section that is taken literally, up to `]]>`.
pub(super) const CDATA: &str = "<![CDATA[";

/// Returns the decoded text of an element. If the text is on lines of its own, the line break and
/// indentation at each end are removed.
pub(super) fn element_text(body: &str) -> String {
    let trimmed = body.trim();
    if let Some(inner) = trimmed.strip_prefix(CDATA).and_then(|text| text.strip_suffix("]]>")) {
        return inner.to_owned();
    }
    match trimmed.is_empty() && body.contains('\n') {
        true => String::new(),
        false => decode(strip_own_lines(body).unwrap_or(body)),
    }
}

/// Strips line break and indentation at both ends; `None` if either line break is missing.
fn strip_own_lines(body: &str) -> Option<&str> {
    let blank = [' ', '\t', '\r'];
    let inner = body.trim_start_matches(blank).strip_prefix('\n')?.trim_start_matches(blank);
    let inner = inner.trim_end_matches([' ', '\t']).strip_suffix('\n')?;
    Some(inner.strip_suffix('\r').unwrap_or(inner))
}

/// Decodes escapes and keeps everything else.
pub(super) fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        // Maximum length of an escape. Without it, many bare `&` before one `;` take quadratic time.
        const MAX_ESCAPE_BYTES: usize = 12;
        let end = after.bytes().take(MAX_ESCAPE_BYTES).position(|byte| byte == b';');
        match end.and_then(|end| Some((decode_entity(&after[..end])?, &after[end + 1..]))) {
            Some((character, after)) => {
                decoded.push(character);
                rest = after;
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

/// Decodes the name of an escape.
fn decode_entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}
