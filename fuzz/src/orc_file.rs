//! Tests that the reader returns an ORC file or an error for any bytes. Also tests that the decoder returns the filters
//! of row groups or an error for each stream of the file.

use tamis_cli::orc_file::OrcFile;
use tamis_formats::orc::RowGroups;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(mut file) = OrcFile::open(bytes) else { return };
    let _ = file.schema.columns();
    let Ok(streams) = file.filter_streams() else { return };
    for stream in streams {
        let Ok(bytes) = file.read(&stream) else { continue };
        let _ = RowGroups::decode(&bytes);
        let _ = RowGroups::decode_original(&bytes);
    }
}
