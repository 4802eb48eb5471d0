//! The end of a broken value, found by its brackets alone.

/// Returns the length of a text up to the bracket that closes its first one.
///
/// Returns `None` if brackets do not match: one is missing, and what follows could be on either side of it.
pub(super) fn balanced_length(text: &str) -> Option<usize> {
    let mut open: Vec<u8> = Vec::new();
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(byte) {
                    return None;
                }
                if open.is_empty() {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
