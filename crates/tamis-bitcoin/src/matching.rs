//! Tests which transactions concern a wallet. The tests follow the rules of a Bitcoin node for a
//! wallet filter (BIP-37).

use tamis_formats::bip37::{Update, WalletFilter};

use crate::block::Block;
use crate::merkle_block::{BlockTooLarge, MerkleBlock};
use crate::script::{is_bare_multisig, is_pay_to_public_key, pushes};
use crate::transaction::Transaction;

/// Tests whether a transaction may concern the wallet. Inserts into the filter the outpoints that
/// the filter's [`Update`] setting selects.
///
/// A transaction matches if the filter contains at least one of these items:
///
/// * the hash of the transaction;
/// * data that an output script or an input script pushes;
/// * an outpoint that the transaction spends.
///
/// The test ignores the witnesses of the transaction.
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

/// Creates the `merkleblock` message of a node for a block. The message proves that the
/// transactions that [match](match_transaction) are in the block. The transactions are tested in
/// the order of the block.
///
/// # Errors
///
/// [`BlockTooLarge`] if no wallet would accept the proof. After an error, the filter is unchanged.
pub fn merkle_block(
    filter: &mut WalletFilter,
    block: &Block<'_>,
) -> Result<MerkleBlock, BlockTooLarge> {
    MerkleBlock::new(block, |transaction| match_transaction(filter, transaction))
}
