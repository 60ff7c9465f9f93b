//! Tests which transactions concern a wallet, as nodes do for a filter of BIP-37.

use tamis_formats::bip37::{Update, WalletFilter};

use crate::block::Block;
use crate::merkle_block::{BlockTooLarge, MerkleBlock};
use crate::script::{is_bare_multisig, is_pay_to_public_key, pushes};
use crate::transaction::Transaction;

/// Tests whether a transaction may concern the wallet, and inserts the outpoints that
/// [`Update`] selects into the filter.
///
/// A transaction matches if the filter has one of these items: its hash, data that a script of its
/// outputs pushes, an outpoint that it spends, or data that a script of its inputs pushes.
/// Witnesses are ignored.
pub fn match_transaction(filter: &mut WalletFilter, transaction: &Transaction<'_>) -> bool {
    let update = filter.update();
    let mut is_found = filter.contains(&transaction.txid().0);
    for (index, output) in (0..).zip(transaction.outputs()) {
        if !pushes(output.script).any(|data| filter.contains(data)) {
            continue;
        }
        is_found = true;
        let is_spent_unseen =
            || is_pay_to_public_key(output.script) || is_bare_multisig(output.script);
        match update {
            Update::All => filter.insert(&transaction.outpoint(index)),
            Update::PublicKeyOnly if is_spent_unseen() => {
                filter.insert(&transaction.outpoint(index))
            }
            Update::PublicKeyOnly | Update::None => continue,
        };
    }
    is_found
        || transaction.inputs().iter().any(|input| {
            filter.contains(input.outpoint) || pushes(input.script).any(|it| filter.contains(it))
        })
}

/// Returns the answer of a node for a block: a proof of the transactions that
/// [match](match_transaction). The transactions are tested in the order of the block.
///
/// # Errors
///
/// [`BlockTooLarge`] if no wallet would accept the proof; nothing has changed.
pub fn merkle_block(
    filter: &mut WalletFilter,
    block: &Block<'_>,
) -> Result<MerkleBlock, BlockTooLarge> {
    MerkleBlock::new(block, |transaction| match_transaction(filter, transaction))
}
