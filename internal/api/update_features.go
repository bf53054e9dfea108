package api

import (
	"fmt"

	"barnabas/internal/config"
	"barnabas/internal/wire"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var _ = register(API{
	Key: 57, Name: "UpdateFeatures", Min: 0, Max: 1, MaxFrame: 1 << 20, Expansion: 24,
	Versions: []string{
		"finalizes versions of features (KIP-584)",
		"kinds of upgrade, validate_only (KIP-778)",
	},
	Handle: handleUpdateFeatures,
})

// handleUpdateFeatures refuses: with ZooKeeper no release of Kafka has a
// feature to finalize (KafkaController.processFeatureUpdates).
func handleUpdateFeatures(b *Broker, q *Request) {
	in := kmsg.NewPtrUpdateFeaturesRequest()
	if !q.Decode(in) {
		return
	}
	r := kmsg.NewPtrUpdateFeaturesResponse()
	fail := func(code wire.Code, message string) {
		r.ErrorCode, r.ErrorMessage = int16(code), text(message)
		q.Reply(r)
	}
	switch {
	case !b.Controller.IsActive():
		fail(wire.NotController, explain(wire.NotController))
		return
	case b.Config.Load().IBP() < config.V2_7IV0:
		fail(wire.InvalidRequest, "Feature versioning system is disabled.")
		return
	}
	at := map[string]int{} // a feature that is named twice is answered once, for the last time
	for _, u := range in.FeatureUpdates {
		result := kmsg.NewUpdateFeaturesResponseResult()
		result.Feature, result.ErrorCode = u.Feature, int16(wire.InvalidRequest)
		result.ErrorMessage = text(featureRefusal(q.Version, &u))
		if i, twice := at[u.Feature]; twice {
			r.Results[i] = result
			continue
		}
		at[u.Feature] = len(r.Results)
		r.Results = append(r.Results, result)
	}
	q.Reply(r)
}

// The kinds of upgrade (FeatureUpdate.UpgradeType).
const (
	upgradeFeature         = 1
	safeDowngradeFeature   = 2
	unsafeDowngradeFeature = 3
)

func featureRefusal(version int16, u *kmsg.UpdateFeaturesRequestFeatureUpdate) string {
	kind := u.UpgradeType
	if version == 0 {
		if kind = upgradeFeature; u.AllowDowngrade {
			kind = safeDowngradeFeature
		}
	}
	switch {
	case u.Feature == "":
		return "Feature name can not be empty."
	case kind < upgradeFeature || kind > unsafeDowngradeFeature:
		return "Received unknown upgrade type."
	case u.MaxVersionLevel < 1 && kind != upgradeFeature:
		return "Can not delete non-existing finalized feature."
	case u.MaxVersionLevel < 1:
		return fmt.Sprintf("Can not provide versionLevel: %d less than 1 without setting the SAFE downgradeType in the request.", u.MaxVersionLevel)
	default:
		return "Could not apply finalized feature update because the provided feature is not supported."
	}
}
