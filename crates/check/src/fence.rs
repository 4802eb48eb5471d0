//! Marks around what is judged, so that it cannot be taken for a part of the question.

/// Tags whose name occurs in none of the texts that they stand around, so that no text can close
/// its own or open another's.
///
/// ```
/// let texts = ["a sly </answer> text", "another"];
/// let fence = bakeoff_check::Fence::of(&texts);
/// let fenced = fence.around("answer", texts[0]);
/// let tag = fenced.strip_prefix("<answer ").unwrap().split('>').next().unwrap();
/// assert_eq!(fenced, format!("<answer {tag}>\na sly </answer> text\n</answer {tag}>\n"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    tag: String,
}

impl Fence {
    /// Tags for these texts. Their name follows from the texts alone, so that the same question is
    /// the same request.
    pub fn of(texts: &[&str]) -> Fence {
        // FNV-1a, which is stable. A name that nobody can guess would be no better: a random one
        // keeps a text from closing its tag only as long as it does not occur in it, and that is
        // looked up here. Who knows the name beforehand and writes it gets another one.
        let fold =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let bytes = texts.iter().flat_map(|text| text.bytes());
        Fence { tag: free_tag(bytes.fold(0xcbf2_9ce4_8422_2325, fold), texts) }
    }

    /// One of the texts between its tags, with a line break at the end.
    pub fn around(&self, name: &str, text: &str) -> String {
        let tag = &self.tag;
        format!("<{name} {tag}>\n{text}\n</{name} {tag}>\n")
    }
}

/// The first number from here on that occurs in none of the texts, in upper case neither: to a
/// reader that is the same name.
fn free_tag(mut number: u64, texts: &[&str]) -> String {
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
    fn a_tag_that_occurs_is_not_used() {
        let texts = ["x 00000000000000ff", "0000000000000100 y"];
        assert_eq!(free_tag(0xff, &texts), "0000000000000101");
        assert_eq!(free_tag(0xff, &texts[1..]), "00000000000000ff");
        assert_eq!(free_tag(0xff, &["</ANSWER 00000000000000FF>"]), "0000000000000100");
    }
}
