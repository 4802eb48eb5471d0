//! Where something that is broken ends: by its brackets alone.

/// The length of what begins with a bracket, up to the one that belongs to it; `None` when brackets
/// do not match, because then one is missing and what comes after it could belong to either side.
pub(super) fn length(text: &str) -> Option<usize> {
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
