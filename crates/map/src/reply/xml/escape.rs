//! Texts without their escapes.

/// What begins a text that is taken as it is, up to `]]>`.
pub(super) const CDATA: &str = "<![CDATA[";

/// The text of an element: as it is, but for a line break at each end with the indentation behind
/// it, which stands there when the element was written on lines of its own.
pub(super) fn text(body: &str) -> String {
    let trimmed = body.trim();
    if let Some(inner) = trimmed.strip_prefix(CDATA).and_then(|text| text.strip_suffix("]]>")) {
        return inner.to_owned();
    }
    match trimmed.is_empty() && body.contains('\n') {
        true => String::new(),
        false => decode(on_own_lines(body).unwrap_or(body)),
    }
}

fn on_own_lines(body: &str) -> Option<&str> {
    let blank = [' ', '\t', '\r'];
    let inner = body.trim_start_matches(blank).strip_prefix('\n')?.trim_start_matches(blank);
    let inner = inner.trim_end_matches([' ', '\t']).strip_suffix('\n')?;
    Some(inner.strip_suffix('\r').unwrap_or(inner))
}

/// What is no escape stays as it is.
pub(super) fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        decoded.push_str(before);
        // No escape is longer; without a bound, many bare `&` before one `;` would take for ever.
        const LONGEST: usize = 12;
        let end = after.bytes().take(LONGEST).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&after[..end])?, &after[end + 1..]))) {
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

fn entity(name: &str) -> Option<char> {
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
