package config

import (
	"maps"
	"strings"
	"testing"
)

func encoding(t *testing.T, static map[string]string) *Broker {
	t.Helper()
	b, err := NewBroker(static)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const passwordKey = "listener.name.ssl.ssl.key.password"

func TestPasswordsComeBackWithTheSecretAlone(t *testing.T) {
	for _, choice := range []map[string]string{
		{}, {"password.encoder.cipher.algorithm": "AES/GCM/NoPadding", "password.encoder.key.length": "256"},
		{"password.encoder.keyfactory.algorithm": "PBKDF2WithHmacSHA1", "password.encoder.iterations": "1024"},
	} {
		static := map[string]string{"password.encoder.secret": "s3cret"}
		maps.Copy(static, choice)
		b := encoding(t, static)
		for _, password := range []string{"", "x", "exactly 16 bytes", "pässwörd, with: all = that 😀"} {
			stored, err := b.EncodePasswords(map[string]string{passwordKey: password, "log.cleaner.threads": "2"})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(stored[passwordKey], "pässwörd") || stored["log.cleaner.threads"] != "2" {
				t.Errorf("%v", stored)
			}
			// how it was encoded is told by what is stored
			plain, warnings := encoding(t, map[string]string{"password.encoder.secret": "s3cret"}).DecodePasswords(stored)
			if plain[passwordKey] != password || len(warnings) > 0 {
				t.Errorf("%q came back as %q, %v", password, plain[passwordKey], warnings)
			}
			plain, warnings = encoding(t, map[string]string{"password.encoder.secret": "other"}).DecodePasswords(stored)
			if _, there := plain[passwordKey]; there || len(warnings) != 1 || plain["log.cleaner.threads"] != "2" {
				t.Errorf("with another secret: %v, %v", plain, warnings)
			}
			next := encoding(t, map[string]string{"password.encoder.secret": "new", "password.encoder.old.secret": "s3cret"})
			again, changed, err := next.ReencodePasswords(stored)
			if err != nil || !changed {
				t.Fatal(changed, err)
			}
			if plain, _ := next.DecodePasswords(again); plain[passwordKey] != password {
				t.Errorf("encoded anew %q came back as %q", password, plain[passwordKey])
			}
			if same, changed, err := next.ReencodePasswords(again); changed || err != nil || !maps.Equal(same, again) {
				t.Errorf("what has the new secret changed again: %v, %v", changed, err)
			}
		}
	}
}

func TestPasswordsNeedASecret(t *testing.T) {
	b := encoding(t, nil)
	if _, err := b.EncodePasswords(map[string]string{"listener.name.x.plain.sasl.jaas.config": "y"}); err != ErrNoSecret {
		t.Error(err)
	}
	if _, err := b.EncodePasswords(map[string]string{"log.cleaner.threads": "2"}); err != nil {
		t.Error(err)
	}
	plain, warnings := b.DecodePasswords(map[string]string{passwordKey: "x"})
	if len(plain) != 0 || len(warnings) != 1 {
		t.Error(plain, warnings)
	}
}

func FuzzStoredPasswords(f *testing.F) {
	e := passwordEncoder{"s", "PBKDF2WithHmacSHA256", "AES/CBC/PKCS5Padding", 128, 1}
	good, err := e.encode("password")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(strings.Replace(good, "CBC/PKCS5", "GCM/No", 1))
	f.Add("salt:,iterations:1")
	f.Fuzz(func(t *testing.T, stored string) {
		if strings.Contains(stored, "iterations:") && !strings.Contains(stored, "iterations:1,") {
			return // only slower
		}
		if password, err := e.decode(stored); err == nil && stored == good && password != "password" {
			t.Error(password)
		}
	})
}
