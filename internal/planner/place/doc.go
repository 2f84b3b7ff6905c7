// Package place decides: which demand goes where, what is launched for it, and what stops. Decide returns a Search with
// everything that was found, and package why turns that into sentences. Nothing here writes sentences, and nothing is
// placed again to explain it.
//
// The words, from the bottom up:
//
//   - A Catalog numbers the resources and label sets of one snapshot. A Vector holds an amount for each resource, and
//     what is free on single cards (raydemand.Cards).
//   - An Item is a count of equal bundles, a Gang a placement group with its Options, a Claim one call of
//     request_resources, a RestRequest one request over REST, a WarmEntry one entry of warm capacity.
//     An Attribution is what serves a RestRequest.
//   - A Shape is what a node consists of. A Fleet has the Groups and the Nodes of the snapshot, and what they share
//     (landing.Shared). It says which nodes stop.
//   - A Ledger records what is free on which NodeClasses, which are numbers of equal nodes, while a Batch of items is
//     placed, and its limits say what may still be launched. A trial is a copy of a ledger. A Placement records bundles
//     on nodes.
//   - A Search places batches and gangs on ledgers by a Strategy.
//   - A round places all demand once in an order and has an Outcome. A Search compares rounds by their verdict. All
//     orders are in one list (preferences.go).
//   - A Model has the costs of launches. A Trial is a replica that is launched to see what its pods announce
//     (landing.Announced).
//
// The way of a waiting task: Catalog.Items makes it part of an Item (newSearch). settleRest and settle call bestRound,
// which compares rounds. In each, place (fit.go) looks for room on what exists, then on what is on its way; launchBest
// (groupchoice.go) launches pods for the rest, as many as the ledger's limits allow, which landing.Shared lowers.
// complete (settle.go) repeats that until nothing more is launched, drop and merge remove launches that are not needed,
// and capInFlight delays some. Decide returns the others by group.
//
// A plan is a fixed point: carried out, it is followed by an empty one. settle.go says how, turn.go what that means for
// demand that is too much for one plan.
package place
