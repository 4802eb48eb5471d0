//! The variables that name certificates.

use std::path::Path;

/// Variables with a file and with a folder of certificates, which replace those of the system.
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
const CERTIFICATE_FOLDER: &str = "SSL_CERT_DIR";
/// Start of a certificate in a file.
const PEM_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Returns what is wrong with the certificates that the environment names.
pub(crate) fn certificate_problem() -> Option<String> {
    let file = std::env::var_os(CERTIFICATE_FILE).and_then(|path| file_problem(Path::new(&path)));
    file.or_else(|| {
        let folders = std::env::var_os(CERTIFICATE_FOLDER)?;
        let missing = std::env::split_paths(&folders).find(|folder| !folder.is_dir())?;
        Some(format!("{CERTIFICATE_FOLDER}: {} is not a folder", missing.display()))
    })
}

fn file_problem(path: &Path) -> Option<String> {
    let problem = match std::fs::read(path) {
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains(PEM_CERTIFICATE) => return None,
        Ok(_) => "contains no certificate in PEM format".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("{CERTIFICATE_FILE}: {}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_certificate_files_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roots.pem");
        let problem = file_problem(&path).unwrap();
        assert!(problem.contains("roots.pem: No such file"), "{problem}");
        std::fs::write(&path, [0xff, 0x00]).unwrap();
        let problem = file_problem(&path).unwrap();
        assert!(problem.ends_with("contains no certificate in PEM format"), "{problem}");
        std::fs::write(&path, format!("# roots\n{PEM_CERTIFICATE}\n")).unwrap();
        assert_eq!(file_problem(&path), None);
    }
}
