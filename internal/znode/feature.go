package znode

import (
	"maps"
	"slices"
)

// FeaturePath holds the finalized features (KIP-584). Its data version is the
// finalized features epoch of ApiVersions.
const FeaturePath = "/feature"

// FeatureStatus says whether feature versioning is on.
type FeatureStatus int32

const (
	// FeaturesDisabled is written by controllers below 2.7-IV0.
	FeaturesDisabled FeatureStatus = 0
	// FeaturesEnabled is written from 2.7-IV0 on.
	FeaturesEnabled FeatureStatus = 1
)

// FeatureLevels is the finalized range of one feature. Min is not part of
// version 2.
type FeatureLevels struct{ Min, Max int16 }

// Features is the data of /feature.
//
// Versions: 1 (2.7-IV0); 2 (3.3-IV0, KIP-778) without min_version_level. An
// unknown finalized feature makes brokers of 2.8 and 3.9 exit, so the map
// stays empty in ZooKeeper mode.
type Features struct {
	Version  int32
	Status   FeatureStatus
	Features map[string]FeatureLevels
}

// Encode writes version 1, or 2 when f.Version is 2.
func (f Features) Encode() []byte {
	version := f.Version
	if version != 2 {
		version = 1
	}
	dst := append([]byte(nil), `{"features":{`...)
	for i, name := range slices.Sorted(maps.Keys(f.Features)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		levels := f.Features[name]
		dst = append(appendString(dst, name), ":{"...)
		if version == 1 {
			dst = append(appendInt(append(dst, `"min_version_level":`...), int64(levels.Min)), ',')
		}
		dst = appendInt(append(dst, `"max_version_level":`...), int64(levels.Max))
		dst = append(dst, '}')
	}
	dst = appendInt(append(dst, `},"version":`...), int64(version))
	dst = appendInt(append(dst, `,"status":`...), int64(f.Status))
	return append(dst, '}')
}

// DecodeFeatures reads versions 1 and 2; others are ErrVersion.
func DecodeFeatures(data []byte) (Features, error) {
	const kind = "features"
	p := parse(kind, data)
	f := Features{Features: map[string]FeatureLevels{}}
	var version, status, mins, maxs, features = false, false, true, true, false
	for key := range p.fields() {
		switch string(key) {
		case "version":
			f.Version, version = p.int32(), true
		case "status":
			f.Status, status = FeatureStatus(p.int32()), true
			if f.Status != FeaturesDisabled && f.Status != FeaturesEnabled {
				p.fail("unknown status")
			}
		case "features":
			features = true
			clear(f.Features)
			for key := range p.fields() {
				name := string(key)
				levels, low, high := p.featureLevels()
				mins, maxs = mins && low, maxs && high
				f.Features[name] = levels
			}
		default:
			p.skip()
		}
	}
	p.require(version, "version")
	if p.err == nil && f.Version != 1 && f.Version != 2 {
		return Features{}, badVersion(kind, f.Version)
	}
	p.require(status, "status")
	p.require(features, "features")
	p.require(mins || f.Version != 1, "min_version_level")
	p.require(maxs, "max_version_level")
	if p.err != nil {
		return Features{}, p.err
	}
	return f, nil
}

func (p *parser) featureLevels() (l FeatureLevels, low, high bool) {
	for key := range p.fields() {
		switch string(key) {
		case "min_version_level":
			l.Min, low = int16(p.integer(16)), true
		case "max_version_level":
			l.Max, high = int16(p.integer(16)), true
		default:
			p.skip()
		}
	}
	return l, low, high
}
