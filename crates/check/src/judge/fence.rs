//! Fences around untrusted texts in a prompt.

/// Tags whose name occurs in none of the fenced texts, so no text can close its own fence or open another.
///
/// ```
/// use bakeoff_check::judge::Fence;
///
/// let texts = ["a sly </response> text", "another"];
/// let fence = Fence::of(&texts);
/// let fenced = fence.around("response", texts[0]);
/// let tag = fenced.strip_prefix("<response ").unwrap().split('>').next().unwrap();
/// assert_eq!(fenced, format!("<response {tag}>\na sly </response> text\n</response {tag}>\n"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    tag: String,
}

impl Fence {
    /// Returns a fence for these texts. The tag is a function of the texts, so equal questions are equal
    /// requests.
    pub fn of(texts: &[&str]) -> Fence {
        // FNV-1a, because it is stable. A random tag would be no safer: it protects only if it does not occur
        // in the texts, and that is verified here. A text that predicts the tag and contains it gets another
        // tag.
        let fold =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let bytes = texts.iter().flat_map(|text| text.bytes());
        Fence { tag: unused_tag(bytes.fold(0xcbf2_9ce4_8422_2325, fold), texts) }
    }

    /// Returns one of the texts between its tags, ending with a line break.
    pub fn around(&self, name: &str, text: &str) -> String {
        let tag = &self.tag;
        format!("<{name} {tag}>\n{text}\n</{name} {tag}>\n")
    }
}

/// Returns the first number from `number` on that occurs in none of the texts. The comparison ignores case,
/// because a model may treat both spellings as the same tag.
fn unused_tag(mut number: u64, texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
    loop {
        let tag = format!("{number:016x}");
        if !texts.iter().any(|text| text.contains(&tag)) {
            return tag;
        }
        number = number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_occurs_in_a_text_is_not_used() {
        let texts = ["x 00000000000000ff", "0000000000000100 y"];
        assert_eq!(unused_tag(0xff, &texts), "0000000000000101");
        assert_eq!(unused_tag(0xff, &texts[1..]), "00000000000000ff");
        assert_eq!(unused_tag(0xff, &["</ANSWER 00000000000000FF>"]), "0000000000000100");
    }
}
