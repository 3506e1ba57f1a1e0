// Utterances during a question in each language, with their meanings. They were written without looking at the tables.

import type { AnswerCorpus } from './answer-language-conformance.ts';

export const corpora: Readonly<Record<string, AnswerCorpus>> = {
  en: {
    choice: {
      question: 'Which room shall I book?',
      options: [
        { id: 'garden', label: 'Garden room', description: '90 euros' },
        { id: 'sea', label: 'Sea view', description: '140 euros' },
      ],
      chosen: {
        garden: ['Garden room.', 'the first one', "I'll take the garden room, please"],
        sea: ['Sea view', 'The second one, please.', 'The garden room, no wait, the sea view'],
      },
      notChosen: [
        'Not the garden room.',
        'Is the sea view quiet?',
        'Neither of them.',
        'Book me a table for two.',
      ],
    },
    approval: {
      question: 'May I send the email?',
      action: 'send_email',
      approved: ['Yes.', 'Yes, please.', 'Go ahead.', 'Yes, send it.'],
      denied: ['No.', "No, don't.", 'Absolutely not.'],
      notApproved: ['Okay.', 'Yeah, right.', 'If you must.', 'Who is it for?', 'Mm-hm.'],
    },
    holds: ['Wait.', 'Hold on a second.', 'Just a moment, please.'],
    repeats: ['Sorry, what?', 'Say that again, please.', 'What were the options?'],
    words: {
      answers: ['Friday.', 'To Anna Smith', 'Half past eight, please'],
      others: ['Never mind.', 'What time is it?', 'By the way, is it raining?'],
    },
    putOffs: {
      stops: ['Not now.', "That's enough, thanks.", 'Stop.'],
      others: ['Stop the music.', 'Yes.', 'Is that enough?'],
    },
    endings: {
      unfinished: ['Book me a ride to', 'I would like the', 'Um'],
      finished: ['Book me a ride to the airport.', 'Turn it off', 'Hold on'],
    },
    listening: {
      backchannels: ['Mm-hm.', 'I see.', 'Right, okay.'],
      others: ['Right?', 'Stop.', 'I see a problem'],
    },
    acknowledging: {
      moments: ['One moment.', 'Got it. One moment, please.', 'Great, just a second.'],
      others: ['Your room is booked.', 'One moment, which one?', 'I will send it.'],
    },
  },
  de: {
    choice: {
      question: 'Welches Zimmer soll ich buchen?',
      options: [
        { id: 'garten', label: 'Gartenzimmer', description: '90 Euro' },
        { id: 'meer', label: 'Meerblick', description: '140 Euro' },
      ],
      chosen: {
        garten: ['Gartenzimmer.', 'das erste', 'Ich nehme das Gartenzimmer, bitte'],
        meer: ['Meerblick', 'Das zweite, bitte.', 'Das Gartenzimmer, nein, warte, Meerblick'],
      },
      notChosen: [
        'Nicht das Gartenzimmer.',
        'Ist der Meerblick ruhig?',
        'Keins von beiden.',
        'Reserviere mir einen Tisch für zwei.',
      ],
    },
    approval: {
      question: 'Darf ich die E-Mail abschicken?',
      action: 'send_email',
      approved: ['Ja.', 'Ja, bitte.', 'Ja, schick sie ab.'],
      denied: ['Nein.', 'Nein, lass das.', 'Auf keinen Fall.'],
      notApproved: ['Okay.', 'Na ja.', 'Wenn es sein muss.', 'An wen geht sie?', 'Mhm.'],
    },
    holds: ['Warte.', 'Einen Moment, bitte.', 'Warte mal kurz.'],
    repeats: ['Wie bitte?', 'Kannst du das wiederholen?', 'Noch mal, bitte.'],
    words: {
      answers: ['Freitag.', 'An Anna Schmidt', 'Um halb neun, bitte'],
      others: ['Vergiss es.', 'Wie spät ist es?', 'Übrigens, regnet es?'],
    },
    putOffs: {
      stops: ['Jetzt nicht.', 'Das reicht, danke.', 'Stopp.'],
      others: ['Stopp die Musik.', 'Ja.', 'Reicht das?'],
    },
    endings: {
      unfinished: ['Bestell mir ein Taxi zum', 'Ich möchte einen', 'Ähm'],
      finished: ['Bestell mir ein Taxi zum Flughafen.', 'Mach es aus', 'Warte'],
    },
    listening: {
      backchannels: ['Mhm.', 'Verstehe.', 'Ja, genau.'],
      others: ['Genau?', 'Stopp.', 'Ich verstehe das nicht'],
    },
    acknowledging: {
      moments: ['Einen Moment.', 'Alles klar. Einen Moment, bitte.', 'Gut, eine Sekunde.'],
      others: ['Dein Zimmer ist gebucht.', 'Einen Moment, welches?', 'Ich schicke sie.'],
    },
  },
  fr: {
    choice: {
      question: 'Quelle chambre dois-je réserver ?',
      options: [
        { id: 'jardin', label: 'Chambre jardin', description: '90 euros' },
        { id: 'mer', label: 'Vue mer', description: '140 euros' },
      ],
      chosen: {
        jardin: ['Chambre jardin.', 'la première', 'Je prends la chambre jardin, merci'],
        mer: [
          'Vue mer',
          "La deuxième, s'il vous plaît.",
          'La chambre jardin, non attends, vue mer',
        ],
      },
      notChosen: [
        'Pas la chambre jardin.',
        'Est-ce que la vue mer est calme ?',
        'Aucune des deux.',
        'Réserve-moi une table pour deux.',
      ],
    },
    approval: {
      question: "Puis-je envoyer l'e-mail ?",
      action: 'send_email',
      approved: ['Oui.', "Oui, s'il vous plaît.", 'Vas-y.'],
      denied: ['Non.', 'Non, merci.', 'Surtout pas.'],
      notApproved: ["D'accord.", 'Bof.', "S'il le faut.", 'À qui ?', 'Mhm.'],
    },
    holds: ['Attends.', "Un moment, s'il vous plaît.", 'Attendez une seconde.'],
    repeats: ['Pardon ?', 'Tu peux répéter ?', 'Quelles étaient les options ?'],
    words: {
      answers: ['Vendredi.', 'À Anne Martin', 'À huit heures et demie'],
      others: ['Laisse tomber.', 'Quelle heure est-il ?', 'Au fait, il pleut ?'],
    },
    putOffs: {
      stops: ['Pas maintenant.', 'Ça suffit, merci.', 'Stop.'],
      others: ['Arrête la musique.', 'Oui.', 'Ça suffit ?'],
    },
    endings: {
      unfinished: ['Réserve un taxi pour', 'Je voudrais une', 'Euh'],
      finished: ["Réserve un taxi pour l'aéroport.", 'Attends', 'Merci beaucoup.'],
    },
    listening: {
      backchannels: ['Mhm.', 'Je vois.', "Oui, d'accord."],
      others: ["D'accord ?", 'Stop.', 'Je vois un problème'],
    },
    acknowledging: {
      moments: ['Un instant.', "Très bien. Un moment, s'il vous plaît.", "D'accord, une seconde."],
      others: ['La chambre est réservée.', 'Un instant, laquelle ?', "Je l'envoie."],
    },
  },
  es: {
    choice: {
      question: '¿Qué habitación reservo?',
      options: [
        { id: 'jardin', label: 'Habitación jardín', description: '90 euros' },
        { id: 'mar', label: 'Vista al mar', description: '140 euros' },
      ],
      chosen: {
        jardin: ['Habitación jardín.', 'la primera', 'Quiero la habitación jardín, por favor'],
        mar: [
          'Vista al mar',
          'La segunda, por favor.',
          'Habitación jardín, no, espera, vista al mar',
        ],
      },
      notChosen: [
        'No la habitación jardín.',
        '¿Es tranquila la vista al mar?',
        'Ninguna de las dos.',
        'Resérvame una mesa para dos.',
      ],
    },
    approval: {
      question: '¿Puedo enviar el correo?',
      action: 'send_email',
      approved: ['Sí.', 'Sí, por favor.', 'Adelante.', 'Sí, envíalo.'],
      denied: ['No.', 'No, gracias.', 'De ninguna manera.'],
      notApproved: ['Vale.', 'Ya veremos.', 'Si no hay más remedio.', '¿A quién?', 'Mhm.'],
    },
    holds: ['Espera.', 'Un momento, por favor.', 'Espera un segundo.'],
    repeats: ['¿Cómo?', '¿Puedes repetir?', '¿Cuáles eran las opciones?'],
    words: {
      answers: ['El viernes.', 'Ana García', 'A las ocho y media'],
      others: ['Olvídalo.', '¿Qué hora es?', 'Por cierto, ¿llueve?'],
    },
    putOffs: {
      stops: ['Ahora no.', 'Basta ya, gracias.', 'Más tarde.'],
      others: ['Para el aeropuerto.', 'Sí.', '¿Es suficiente?'],
    },
    endings: {
      unfinished: ['Reserva un taxi para', 'Quiero la', 'Eh'],
      finished: ['Reserva un taxi para el aeropuerto.', 'Espera', 'Muchas gracias.'],
    },
    listening: {
      backchannels: ['Mhm.', 'Ya veo.', 'Sí, claro.'],
      others: ['¿Claro?', 'Basta.', 'Ya veo un problema'],
    },
    acknowledging: {
      moments: ['Un momento.', 'Muy bien. Un momento, por favor.', 'De acuerdo, un segundo.'],
      others: ['La habitación está reservada.', 'Un momento, ¿cuál?', 'Lo envío.'],
    },
  },
  it: {
    choice: {
      question: 'Quale camera prenoto?',
      options: [
        { id: 'giardino', label: 'Camera giardino', description: '90 euro' },
        { id: 'mare', label: 'Vista mare', description: '140 euro' },
      ],
      chosen: {
        giardino: ['Camera giardino.', 'la prima', 'Prendo la camera giardino, per favore'],
        mare: ['Vista mare', 'La seconda, grazie.', 'Camera giardino, no aspetta, vista mare'],
      },
      notChosen: [
        'Non la camera giardino.',
        'La vista mare no.',
        'La vista mare è tranquilla?',
        'Nessuna delle due.',
        'Prenotami un tavolo per due.',
      ],
    },
    approval: {
      question: "Posso inviare l'email?",
      action: 'send_email',
      approved: ['Sì.', 'Sì, per favore.', 'Vai pure.', 'Sì, inviala.'],
      denied: ['No.', 'No, grazie.', 'Assolutamente no.'],
      notApproved: ['Va bene.', 'Se proprio devi.', 'Sì, come no.', 'A chi?', 'Mhm.'],
    },
    holds: ['Aspetta.', 'Un momento, per favore.', 'Aspetta un attimo.'],
    repeats: ['Come, scusa?', 'Puoi ripetere?', 'Quali erano le opzioni?'],
    words: {
      answers: ['Venerdì.', 'Anna Rossi', 'Alle otto e mezza'],
      others: ['Lascia perdere.', 'Che ore sono?', 'A proposito, piove?'],
    },
    putOffs: {
      stops: ['Non ora.', 'Basta così, grazie.', 'Più tardi.'],
      others: ['Ferma la musica.', 'Sì.', 'Basta così?'],
    },
    endings: {
      unfinished: ['Prenota un taxi per', 'Vorrei la', 'Ehm'],
      finished: ["Prenota un taxi per l'aeroporto.", 'Aspetta', 'Grazie mille.'],
    },
    listening: {
      backchannels: ['Mhm.', 'Capisco.', 'Sì, certo.'],
      others: ['Certo?', 'Basta.', 'Capisco il problema'],
    },
    acknowledging: {
      moments: ['Un attimo.', 'Benissimo. Un momento, per favore.', "D'accordo, un secondo."],
      others: ['La camera è prenotata.', 'Un attimo, quale?', 'La invio.'],
    },
  },
};
