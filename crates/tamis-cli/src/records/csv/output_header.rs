//! The header of an output of CSV.

use crate::records::csv::fields::without_return;

/// The header of the output, which is the header of the first input.
#[derive(Debug, Default)]
pub struct OutputHeader(Option<Vec<u8>>);

impl OutputHeader {
    /// Tests whether `header` is the first header. The caller writes only the first header.
    ///
    /// # Errors
    ///
    /// A message if the header differs from the first header. The rows under a different header do
    /// not fit under the first header.
    pub fn is_first(&mut self, header: &[u8]) -> Result<bool, String> {
        let header = without_return(header.strip_suffix(b"\n").unwrap_or(header));
        match &self.0 {
            None => {
                self.0 = Some(header.to_vec());
                Ok(true)
            }
            Some(first) if first == header => Ok(false),
            Some(_) => Err("the header differs from the header of the first input: use inputs with the same columns, or process each \
                            input separately"
                .into()),
        }
    }
}
