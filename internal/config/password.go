package config

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// ErrNoSecret is the error of a dynamic password while password.encoder.secret
// is not set.
var ErrNoSecret = errors.New("password.encoder.secret is not set")

// The choices of password.encoder.keyfactory.algorithm.
var keyFactories = map[string]func() hash.Hash{
	"PBKDF2WithHmacSHA1": sha1.New, "PBKDF2WithHmacSHA224": sha256.New224, "PBKDF2WithHmacSHA256": sha256.New,
	"PBKDF2WithHmacSHA384": sha512.New384, "PBKDF2WithHmacSHA512": sha512.New,
}

// Bounds of what a stored password may ask for: each is work or memory that
// somebody who can write to ZooKeeper would make every broker spend.
const (
	mostIterations = 10_000_000
	mostEncoded    = 1 << 20
)

// passwordEncoder writes and reads the passwords of dynamic properties as
// Kafka keeps them in ZooKeeper
// (org.apache.kafka.security.EncryptingPasswordEncoder): name:value pairs with
// commas between, among them how it was encoded, so that any choice can be read.
type passwordEncoder struct {
	secret             string
	keyFactory, cipher string
	keyLength          int // bits
	iterations         int
}

func (b *Broker) passwordEncoder(secretKey string) (*passwordEncoder, error) {
	if !b.Has(secretKey) {
		return nil, ErrNoSecret
	}
	e := &passwordEncoder{secret: b.String(secretKey), keyFactory: b.String("password.encoder.keyfactory.algorithm"),
		cipher: b.String("password.encoder.cipher.algorithm"), keyLength: b.Int("password.encoder.key.length"), iterations: b.Int("password.encoder.iterations")}
	if e.keyFactory == "" {
		e.keyFactory = "PBKDF2WithHmacSHA512"
	}
	return e, nil
}

// isGCM tells whether the cipher is AES/GCM, else it is AES/CBC.
func (e *passwordEncoder) isGCM() bool { return e.cipher == "AES/GCM/NoPadding" }

// block derives the key and makes the block cipher.
func (e *passwordEncoder) block(salt []byte) (cipher.Block, error) {
	h := keyFactories[e.keyFactory]
	switch {
	case h == nil:
		return nil, fmt.Errorf("there is no key factory %s here; there are %s", e.keyFactory, strings.Join(slices.Sorted(maps.Keys(keyFactories)), ", "))
	case e.cipher != "AES/CBC/PKCS5Padding" && !e.isGCM():
		return nil, fmt.Errorf("there is no cipher %s here; there are AES/CBC/PKCS5Padding and AES/GCM/NoPadding", e.cipher)
	case e.iterations < 1 || e.iterations > mostIterations:
		return nil, fmt.Errorf("%d iterations are not between 1 and %d", e.iterations, mostIterations)
	case e.keyLength != 128 && e.keyLength != 192 && e.keyLength != 256:
		return nil, fmt.Errorf("a key of AES has 128, 192 or 256 bits, not %d", e.keyLength)
	}
	key, err := pbkdf2.Key(h, e.secret, salt, e.iterations, e.keyLength/8)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// encode returns a password as it is stored.
func (e *passwordEncoder) encode(password string) (string, error) {
	salt := make([]byte, 256)
	_, _ = rand.Read(salt) // never fails
	block, err := e.block(salt)
	if err != nil {
		return "", err
	}
	b64 := base64.StdEncoding.EncodeToString
	fields := map[string]string{"keyFactoryAlgorithm": e.keyFactory, "cipherAlgorithm": e.cipher, "keyLength": strconv.Itoa(e.keyLength),
		"iterations": strconv.Itoa(e.iterations), "salt": b64(salt), "passwordLength": strconv.Itoa(javaLength(password))}
	if e.isGCM() {
		seal, err := cipher.NewGCM(block)
		if err != nil {
			return "", err
		}
		nonce := make([]byte, seal.NonceSize())
		_, _ = rand.Read(nonce)
		fields["initializationVector"], fields["authenticationTagLength"] = b64(nonce), strconv.Itoa(8*seal.Overhead())
		fields["encryptedPassword"] = b64(seal.Seal(nil, nonce, []byte(password), nil))
	} else {
		iv := make([]byte, aes.BlockSize)
		_, _ = rand.Read(iv)
		pad := aes.BlockSize - len(password)%aes.BlockSize
		text := append([]byte(password), slices.Repeat([]byte{byte(pad)}, pad)...)
		cipher.NewCBCEncrypter(block, iv).CryptBlocks(text, text)
		fields["initializationVector"], fields["encryptedPassword"] = b64(iv), b64(text)
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		pairs = append(pairs, name+":"+fields[name])
	}
	return strings.Join(pairs, ","), nil
}

// javaLength is how many UTF-16 units Java counts.
func javaLength(s string) int { return len(utf16.Encode([]rune(s))) }

var errPassword = errors.New("the password can't be decoded; was it encoded with another password.encoder.secret?")

// decode reads a stored password. How it was encoded is said there.
func (e *passwordEncoder) decode(stored string) (string, error) {
	if len(stored) > mostEncoded {
		return "", errPassword
	}
	fields := map[string]string{}
	for pair := range strings.SplitSeq(stored, ",") {
		if i := strings.LastIndexByte(pair, ':'); i >= 0 {
			fields[trim(pair[:i])] = trim(pair[i+1:])
		}
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(fields[name]) // 0 is refused
		return n
	}
	raw := func(name string) []byte {
		b, _ := base64.StdEncoding.DecodeString(fields[name]) // what is wrong does not decode
		return b
	}
	as := passwordEncoder{e.secret, fields["keyFactoryAlgorithm"], fields["cipherAlgorithm"], number("keyLength"), number("iterations")}
	iv, text := raw("initializationVector"), raw("encryptedPassword")
	block, err := as.block(raw("salt"))
	if err != nil {
		return "", err
	}
	if as.isGCM() {
		if len(iv) == 0 || number("authenticationTagLength") != 128 {
			return "", errPassword
		}
		open, err := cipher.NewGCMWithNonceSize(block, len(iv))
		if err != nil {
			return "", errPassword
		}
		if text, err = open.Open(nil, iv, text, nil); err != nil {
			return "", errPassword
		}
	} else {
		if len(iv) != aes.BlockSize || len(text) == 0 || len(text)%aes.BlockSize != 0 {
			return "", errPassword
		}
		cipher.NewCBCDecrypter(block, iv).CryptBlocks(text, text)
		pad := int(text[len(text)-1])
		if pad < 1 || pad > aes.BlockSize || slices.ContainsFunc(text[len(text)-pad:], func(c byte) bool { return int(c) != pad }) {
			return "", errPassword
		}
		text = text[:len(text)-pad]
	}
	if n, err := strconv.Atoi(fields["passwordLength"]); err != nil || n != javaLength(string(text)) {
		return "", errPassword
	}
	return string(text), nil
}

// IsPassword tells whether a dynamic property is stored encoded
// (DynamicBrokerConfig.isPasswordConfig).
func IsPassword(key string) bool {
	return slices.ContainsFunc(brokerTable.sorted, func(d *Definition) bool {
		return d.Sensitive() && d.Mode != ReadOnly && strings.HasSuffix(key, d.Name)
	})
}

// EncodePasswords returns a broker's dynamic properties as they are stored:
// passwords encoded with password.encoder.secret. Without one the error is
// ErrNoSecret.
func (b *Broker) EncodePasswords(perBroker map[string]string) (map[string]string, error) {
	out := maps.Clone(perBroker)
	for key, password := range perBroker {
		if !IsPassword(key) {
			continue
		}
		e, err := b.passwordEncoder("password.encoder.secret")
		if err != nil {
			return nil, err
		}
		if out[key], err = e.encode(password); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// DecodePasswords returns a broker's dynamic properties as they are meant. A
// password that can't be decoded is left out, with a warning.
func (b *Broker) DecodePasswords(stored map[string]string) (map[string]string, []Warning) {
	return b.decodePasswords(stored, "password.encoder.secret")
}

func (b *Broker) decodePasswords(stored map[string]string, secretKey string) (out map[string]string, warnings []Warning) {
	out = maps.Clone(stored)
	for key, text := range stored {
		if !IsPassword(key) {
			continue
		}
		e, err := b.passwordEncoder(secretKey)
		if err == nil {
			out[key], err = e.decode(text)
		}
		if err != nil {
			delete(out, key)
			warnings = append(warnings, Warning{Key: key, Text: err.Error() + "; this dynamic property is ignored"})
		}
	}
	return out, warnings
}

// ReencodePasswords returns stored properties in which those passwords are
// encoded anew that password.encoder.old.secret decodes; changed is false if
// there are none (DynamicBrokerConfig.maybeReEncodePasswords).
func (b *Broker) ReencodePasswords(stored map[string]string) (out map[string]string, changed bool, err error) {
	if !b.Has("password.encoder.old.secret") {
		return stored, false, nil
	}
	plain, _ := b.decodePasswords(stored, "password.encoder.old.secret") // the others stay
	out = maps.Clone(stored)
	for key, password := range plain {
		if !IsPassword(key) {
			continue
		}
		encoded, err := b.EncodePasswords(map[string]string{key: password})
		if err != nil {
			return stored, false, err
		}
		out[key], changed = encoded[key], true
	}
	return out, changed, nil
}
